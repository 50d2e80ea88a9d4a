// The methods and attributes that Python's values have.
#pragma once

#include "chat/jinja/objects.h"

namespace kvasir::jinja {

/// A method bound to its value, or another attribute; missing where Python has none of that name.
Result<Value> find_method(Render& render, const Value& of, TextView name);

/// One of str's; missing where it has none of that name. In methods_text.cc.
Value find_text_method(Render& render, const Value& of, TextView name);

/// A parameter as an integer; `otherwise` where it is missing. Errors: another type.
inline Result<int64_t> integer_or(const Value& value, int64_t otherwise) {
  if (value.is_missing()) return otherwise;
  if (!value.is_int()) return failed("'" + type_name(value) + "' object cannot be interpreted as an integer");
  return value.to_int();
}
/// The same, where Python takes None for no value.
inline Result<int64_t> integer_or_none(const Value& value, int64_t otherwise) {
  return value.is_none() ? otherwise : integer_or(value, otherwise);
}

}  // namespace kvasir::jinja
