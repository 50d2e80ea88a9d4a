// Evaluates x.y, x[y] and x[a:b:c] by the rules of Jinja's sandbox.
#pragma once

#include "chat/jinja/render.h"

namespace kvasir::jinja {

/// x.name: returns the attribute, else the item with that key, else undefined. Requires: `name` is a text.
Result<Value> get_attribute(Render& render, const Value& of, const Value& name);
/// x[index]: returns the item, else the attribute of that name, else undefined.
Result<Value> get_item(Render& render, const Value& of, const Value& index);
/// x[begin:end:step]; each bound may be none. Errors: a value that cannot be sliced, a bound that is not an integer, a
/// step of 0.
Result<Value> slice(Render& render, const Value& of, const Value& begin, const Value& end, const Value& step);
/// Whether Python can slice the value: a text, a list, a tuple or a range.
bool is_sliceable(const Value& of);

/// Returns the attribute that the Python value itself has, ignoring items; missing if there is none.
Result<Value> own_attribute(Render& render, const Value& of, TextView name);

}  // namespace kvasir::jinja
