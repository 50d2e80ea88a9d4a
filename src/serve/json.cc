// JSON within limits.
#include "serve/json.h"

#include <vector>

#include <fmt/format.h>

namespace kvasir::serve {
namespace {

// Counts what a text would become, without reading it. Of a valid one, every value but the first of each container
// follows a comma.
class Counter {
 public:
  explicit Counter(const JsonLimits& limits) : limits_(limits), members_(static_cast<size_t>(limits.depth) + 2) {}

  /// Errors: the first limit that is passed.
  Result<void> count(std::string_view text) {
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '"') {
        for (++i; i < text.size() && text[i] != '"'; ++i) i += text[i] == '\\' ? 1 : 0;
        letters_ = 0;
      } else if (const char* what = take(text[i])) {
        return fail(Error::bad_argument, fmt::format("the body has more than {} at byte {}", what, i + 1), "body");
      }
    }
    return {};
  }

 private:
  // What there is too much of.
  const char* take(char c) {
    const bool structural = std::string_view(",:[]{} \n\r\t").find(c) != std::string_view::npos;
    letters_ = structural ? 0 : letters_ + 1;
    if (letters_ > limits_.digits) return "the allowed digits of a number";
    if (c == ',' && ++values_ > limits_.values) return "the allowed values";
    if (c == ':' && ++members_[depth_] > limits_.members) return "the allowed members of an object";
    if (c == '[' || c == '{') {
      if (++containers_ > limits_.containers) return "the allowed arrays and objects";
      if (++depth_ > static_cast<size_t>(limits_.depth)) return "the allowed levels";
      members_[depth_] = 0;
    }
    if ((c == ']' || c == '}') && depth_ > 0) --depth_;
    return nullptr;
  }

  const JsonLimits& limits_;
  std::vector<size_t> members_;  // [levels]
  size_t depth_ = 0, values_ = 0, containers_ = 0, letters_ = 0;
};

}  // namespace

Result<Json> parse_json(std::string_view text, const JsonLimits& limits) {
  KVASIR_CHECK(Counter(limits).count(text));
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
