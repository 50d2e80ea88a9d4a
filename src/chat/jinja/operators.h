// Python's operators on values: arithmetic, comparison, truth.
#pragma once

#include "chat/jinja/ast.h"
#include "chat/jinja/render.h"

namespace kvasir::jinja {

/// Why an undefined value cannot be used, as an error.
tl::unexpected<Error> undefined_error(const Value& value);

/// bool(). Errors: reading the length of a loop.
Result<bool> truth(Render& render, const Value& value);
/// ==. Two undefined values are equal.
Result<bool> equals(Render& render, const Value& a, const Value& b);
/// <. Errors: types that Python does not order.
Result<bool> less(Render& render, const Value& a, const Value& b);
Result<bool> contains(Render& render, const Value& container, const Value& value);
Result<bool> compare(Render& render, Op op, const Value& a, const Value& b);
/// `is`: the same object.
bool identical(const Value& a, const Value& b);

/// + - * / // % **. Errors: types without the operator, division by zero, integers of more than 64 bits.
Result<Value> calculate(Render& render, Op op, const Value& a, const Value& b);
Result<Value> negative(const Value& value);
Result<Value> positive(const Value& value);

/// Errors: a value that cannot be hashed: a list, a dict.
Result<void> check_key(const Value& key);
/// Puts a pair into a dict, or another value at an equal key. Errors: a key that cannot be hashed.
Result<void> set_key(Render& render, std::vector<std::pair<Value, Value>>* pairs, const Value& key, const Value& value);
/// The value at a key; missing where there is none. Errors: a key that cannot be hashed.
Result<Value> find_key(Render& render, const std::vector<std::pair<Value, Value>>& pairs, const Value& key);

}  // namespace kvasir::jinja
