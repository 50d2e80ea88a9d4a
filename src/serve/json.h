// JSON of requests and answers. Parses within limits; always writes valid UTF-8.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include <kvasir/result.h>

namespace kvasir::serve {

/// Keys keep their order, so that answers look as documented.
using Json = nlohmann::ordered_json;

/// Limits on a request's JSON, since parsing can need a hundred times the memory of the text.
struct JsonLimits {
  size_t values = 1'000'000;
  size_t containers = 100'000;  ///< arrays and objects
  size_t depth = 64;
  size_t members = 4096;         ///< of one object
  size_t searched = 16'000'000;  ///< comparisons over all objects: a new member is searched for among those before it
  size_t digits = 128;           ///< of a number; or letters of another word outside of strings
};

/// Errors: invalid JSON, with the byte where it becomes invalid; or a limit is exceeded.
Result<Json> parse_json(std::string_view text, const JsonLimits& limits = {});
/// Writes JSON; bytes that are not UTF-8 become U+FFFD.
std::string to_text(const Json& json);

}  // namespace kvasir::serve
