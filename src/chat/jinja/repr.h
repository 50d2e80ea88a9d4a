// str() and repr() of values, and the shortest text of a real.
#pragma once

#include "chat/jinja/render.h"

namespace kvasir::jinja {

/// str(value), as {{ value }} prints it; empty for an undefined value.
Result<Text> str_of(Render& render, const Value& value);
/// repr(value), as it appears inside a list.
Result<Text> repr_of(Render& render, const Value& value);

/// ascii(): a repr with all characters outside ASCII escaped.
Text ascii_of(TextView repr);

/// repr(float): the shortest digits that parse to the same double: "0.1", "1e-07", "1e+16", "inf".
std::string real_text(double value);
/// Escapes & < > ' " for HTML, as Markup does.
Text escaped(TextView text);

}  // namespace kvasir::jinja
