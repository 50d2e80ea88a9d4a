// str() and repr() of values, and the texts of numbers.
#pragma once

#include "chat/jinja/render.h"

namespace kvasir::jinja {

/// What {{ value }} prints.
Result<Text> str_of(Render& render, const Value& value);
/// What a list shows of it.
Result<Text> repr_of(Render& render, const Value& value);

/// ascii(): a repr with escapes for all but ASCII.
Text ascii_of(TextView repr);

/// The shortest digits that read back the same: "0.1", "1e-07", "1e+16", "inf".
std::string real_text(double value);
/// With & < > ' " written as HTML does: Markup.
Text escaped(TextView text);

}  // namespace kvasir::jinja
