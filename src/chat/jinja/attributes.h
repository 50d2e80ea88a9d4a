// x.y, x[y] and x[a:b:c], as Jinja's sandbox allows them.
#pragma once

#include "chat/jinja/render.h"

namespace kvasir::jinja {

/// x.name: the attribute, else the item of that key; undefined where there is neither. Requires: a text.
Result<Value> get_attribute(Render& render, const Value& of, const Value& name);
/// x[index]: the item, else the attribute of that name; undefined where there is neither.
Result<Value> get_item(Render& render, const Value& of, const Value& index);
/// The bounds may be none. Errors: a value that cannot be sliced, bounds that are no integers, a step of 0.
Result<Value> slice(Render& render, const Value& of, const Value& begin, const Value& end, const Value& step);

/// Python's attribute of the value itself, without items; missing where it has none.
Result<Value> own_attribute(Render& render, const Value& of, TextView name);

}  // namespace kvasir::jinja
