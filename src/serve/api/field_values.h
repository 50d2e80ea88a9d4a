// Converts a JSON value to the type of a field. Errors do not name the field; the caller adds it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "serve/json.h"

namespace kvasir::serve {

Result<bool> as_bool(const Json& value);
/// Accepts a whole number, 3.0 included. Errors: out of range; the error names the range.
Result<int64_t> as_integer(const Json& value, int64_t least, int64_t most);
Result<double> as_number(const Json& value, double least, double most);
Result<std::string> as_string(const Json& value);
/// Accepts an array of token ids.
Result<std::vector<int>> as_ids(const Json& value);
/// Accepts a string or an array of at most `most` strings.
Result<std::vector<std::string>> as_strings(const Json& value, size_t most);

/// A value as errors show it: its JSON, or only its type and size if it is long.
std::string shown(const Json& value);

}  // namespace kvasir::serve
