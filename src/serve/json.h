// JSON of requests and answers: read within limits, written as valid UTF-8 whatever the strings hold.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include <kvasir/result.h>

namespace kvasir::serve {

/// Keys keep their order, so that an answer reads as it is documented.
using Json = nlohmann::ordered_json;

/// What a request's text may hold: a small text can ask for a hundred times its size of memory.
struct JsonLimits {
  size_t values = 1'000'000;
  size_t containers = 100'000;  ///< arrays and objects
  size_t depth = 64;
  size_t members = 4096;         ///< of one object; a member is looked for among those before it, so also
  size_t searched = 16'000'000;  ///< members that are looked at, over all objects
  size_t digits = 128;           ///< of a number, or letters of what is none
};

/// Errors: a text that is no JSON, with the offset where it stops to be; more than the limits.
Result<Json> parse_json(std::string_view text, const JsonLimits& limits = {});
/// Bytes that are not UTF-8 become U+FFFD.
std::string to_text(const Json& json);

}  // namespace kvasir::serve
