// Reading one JSON value as what a field takes. Errors name no field: who reads a field adds it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "serve/json.h"

namespace kvasir::serve {

Result<bool> as_bool(const Json& value);
/// A whole number; 3.0 is one. Beyond the range: an error that tells it.
Result<int64_t> as_integer(const Json& value, int64_t least, int64_t most);
Result<double> as_number(const Json& value, double least, double most);
Result<std::string> as_string(const Json& value);
/// An array of token ids.
Result<std::vector<int>> as_ids(const Json& value);
/// A string or an array of at most `most` strings.
Result<std::vector<std::string>> as_strings(const Json& value, size_t most);

/// "got \"abc\"", of long values only their kind: for errors.
std::string shown(const Json& value);

}  // namespace kvasir::serve
