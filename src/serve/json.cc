// JSON within limits.
#include "serve/json.h"

#include <algorithm>

#include <fmt/format.h>

namespace kvasir::serve {
namespace {

// Of a valid text, every value but the first of each container follows a comma.
Result<void> check_size(std::string_view text, const JsonLimits& limits) {
  size_t containers = 0, commas = 0;
  int depth = 0, deepest = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
      continue;
    }
    in_string = c == '"';
    commas += c == ',' ? 1 : 0;
    if (c == '[' || c == '{') {
      ++containers;
      deepest = std::max(deepest, ++depth);
    }
    if (c == ']' || c == '}') --depth;
  }
  const size_t values = commas + containers + 1;
  if (deepest > limits.depth)
    return fail(Error::bad_argument, fmt::format("the body is {} levels deep", deepest), "body",
                fmt::format("at most {}", limits.depth));
  if (containers > limits.containers || values > limits.values)
    return fail(Error::bad_argument, fmt::format("the body has {} arrays and objects, {} values", containers, values),
                "body", fmt::format("at most {} and {}", limits.containers, limits.values));
  return {};
}

}  // namespace

Result<Json> parse_json(std::string_view text, const JsonLimits& limits) {
  KVASIR_CHECK(check_size(text, limits));
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& e) {
    return fail(Error::damaged, fmt::format("the body is not valid JSON at byte {}", e.byte), "body", "JSON in UTF-8");
  } catch (const Json::exception&) {  // a number that no double holds
    return fail(Error::damaged, "the body is not valid JSON: a number out of range", "body", "JSON in UTF-8");
  }
}

std::string to_text(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace kvasir::serve
