// Python's operators on values: arithmetic, comparison, truth; and the keys of dicts.
#pragma once

#include "chat/jinja/ast.h"
#include "chat/jinja/render.h"

namespace kvasir::jinja {

/// Returns the error for the use of an undefined value.
tl::unexpected<Error> undefined_error(const Value& value);

/// bool(value). Errors: those of reading a loop's items to its end.
Result<bool> truth(Render& render, const Value& value);
/// a == b. Two undefined values are equal.
Result<bool> equals(Render& render, const Value& a, const Value& b);
/// a < b. Errors: types that Python does not order.
Result<bool> less(Render& render, const Value& a, const Value& b);
Result<bool> contains(Render& render, const Value& container, const Value& value);
Result<bool> compare(Render& render, Op op, const Value& a, const Value& b);
/// a is b: the same object.
bool identical(const Value& a, const Value& b);

/// + - * / // % **. Errors: types without the operator, division by zero, integers of more than 64 bits.
Result<Value> calculate(Render& render, Op op, const Value& a, const Value& b);
Result<Value> negative(const Value& value);
Result<Value> positive(const Value& value);

/// Errors: a value that cannot be hashed (a list, a dict, or a tuple that contains one).
Result<void> check_key(const Value& key);
/// Adds a pair to a dict, or replaces the value of an equal key. Errors: a key that cannot be hashed.
Result<void> set_key(Render& render, std::vector<std::pair<Value, Value>>* pairs, const Value& key, const Value& value);
/// Returns the value of a key; missing if the key is absent. Errors: a key that cannot be hashed.
Result<Value> find_key(Render& render, const std::vector<std::pair<Value, Value>>& pairs, const Value& key);

}  // namespace kvasir::jinja
