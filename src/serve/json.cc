// Checks the limits on a JSON text before nlohmann's parser reads it.
#include "serve/json.h"

#include <optional>
#include <vector>

#include <fmt/format.h>

namespace kvasir::serve {
namespace {

// Counts values, containers and members of a text without parsing it. In valid JSON, every value except the first of
// each container follows a comma.
class Counter {
 public:
  explicit Counter(const JsonLimits& limits) : limits_(limits), members_(limits.depth + 2) {}

  /// Errors: the first limit that is exceeded.
  Result<void> count(std::string_view text) {
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '"') {
        for (++i; i < text.size() && text[i] != '"'; ++i) i += text[i] == '\\' ? 1 : 0;
        letters_ = 0;
      } else if (const auto over = take(text[i])) {
        return fail(Error::bad_argument,
                    fmt::format("the body has more than {} {} at byte {}", over->most, over->what, i + 1), "body");
      }
    }
    return {};
  }

 private:
  struct Over {
    size_t most;
    const char* what;
  };
  std::optional<Over> take(char c) {
    const bool structural = std::string_view(",:[]{} \n\r\t").find(c) != std::string_view::npos;
    letters_ = structural ? 0 : letters_ + 1;
    if (letters_ > limits_.digits) return Over{limits_.digits, "digits of a number"};
    if (c == ',' && ++values_ > limits_.values) return Over{limits_.values, "values"};
    if (c == ':') {
      if (++members_[depth_] > limits_.members) return Over{limits_.members, "members of an object"};
      if ((searched_ += members_[depth_]) > limits_.searched) return Over{limits_.searched, "members to look through"};
    }
    if (c == '[' || c == '{') {
      if (++containers_ > limits_.containers) return Over{limits_.containers, "arrays and objects"};
      if (++depth_ > limits_.depth) return Over{limits_.depth, "levels"};
      members_[depth_] = 0;
    }
    if ((c == ']' || c == '}') && depth_ > 0) --depth_;
    return {};
  }

  const JsonLimits& limits_;
  std::vector<size_t> members_;  // [levels]
  size_t depth_ = 0, values_ = 0, containers_ = 0, letters_ = 0, searched_ = 0;
};

}  // namespace

Result<Json> parse_json(std::string_view text, const JsonLimits& limits) {
  KVASIR_CHECK(Counter(limits).count(text));
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& e) {
    return fail(Error::damaged, fmt::format("the body is not valid JSON at byte {}", e.byte), "body", "JSON in UTF-8");
  } catch (const Json::exception&) {  // a number beyond the range of a double
    return fail(Error::damaged, "the body is not valid JSON: a number out of range", "body", "JSON in UTF-8");
  }
}

std::string to_text(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace kvasir::serve
