// The methods and attributes of Python's values.
#pragma once

#include "chat/jinja/objects.h"

namespace kvasir::jinja {

/// Returns a method bound to its value, or another attribute; missing if Python has none of that name.
Result<Value> find_method(Render& render, const Value& of, TextView name);

/// Returns a method of str; missing if there is none of that name. In methods_text.cc.
Value find_text_method(Render& render, const Value& of, TextView name);

/// Returns an argument as an integer; `otherwise` if it is missing. Errors: another type.
inline Result<int64_t> integer_or(const Value& value, int64_t otherwise) {
  if (value.is_missing()) return otherwise;
  if (!value.is_int()) return failed("'" + type_name(value) + "' object cannot be interpreted as an integer");
  return value.to_int();
}
/// As integer_or, but None also counts as missing.
inline Result<int64_t> integer_or_none(const Value& value, int64_t otherwise) {
  return value.is_none() ? otherwise : integer_or(value, otherwise);
}

}  // namespace kvasir::jinja
