// Converts JSON values to C++ values.
#include "serve/api/field_values.h"

#include <climits>
#include <cmath>

#include <fmt/format.h>

namespace kvasir::serve {
namespace {

tl::unexpected<Error> wrong(const Json& value, const std::string& wanted) {
  return fail(Error::bad_argument, fmt::format("{} is not {}", shown(value), wanted), {}, wanted);
}

}  // namespace

std::string shown(const Json& value) {
  if (value.is_structured()) return value.is_array() ? "an array" : "an object";
  const std::string text = to_text(value);
  return text.size() <= 40 ? text : fmt::format("a {} of {} bytes", value.type_name(), text.size());
}

Result<bool> as_bool(const Json& value) {
  if (!value.is_boolean()) return wrong(value, "true or false");
  return value.get<bool>();
}

Result<int64_t> as_integer(const Json& value, int64_t least, int64_t most) {
  const std::string wanted = most == INT64_MAX && least == INT64_MIN ? std::string("a whole number of 64 bits")
                             : most >= INT_MAX                       ? fmt::format("a whole number from {}", least)
                                               : fmt::format("a whole number from {} to {}", least, most);
  if (!value.is_number()) return wrong(value, wanted);
  if (value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX) return wrong(value, wanted);
  if (value.is_number_float()) {
    const auto number = value.get<double>();
    if (number != std::floor(number) || std::abs(number) > 9e15) return wrong(value, wanted);
  }
  const auto whole = value.get<int64_t>();
  if (whole < least || whole > most) return wrong(value, wanted);
  return whole;
}

Result<double> as_number(const Json& value, double least, double most) {
  const std::string wanted = fmt::format("a number from {} to {}", least, most);
  if (!value.is_number()) return wrong(value, wanted);
  const auto number = value.get<double>();
  if (!(number >= least && number <= most)) return wrong(value, wanted);
  return number;
}

Result<std::string> as_string(const Json& value) {
  if (!value.is_string()) return wrong(value, "a string");
  return value.get<std::string>();
}

Result<std::vector<int>> as_ids(const Json& value) {
  if (!value.is_array()) return wrong(value, "an array of token ids");
  std::vector<int> ids;
  ids.reserve(value.size());
  for (const Json& item : value) {
    KVASIR_TRY(const int64_t id, as_integer(item, 0, INT_MAX));
    ids.push_back(static_cast<int>(id));
  }
  return ids;
}

Result<std::vector<std::string>> as_strings(const Json& value, size_t most) {
  if (value.is_string()) return std::vector{value.get<std::string>()};
  if (!value.is_array() || value.size() > most)
    return wrong(value, fmt::format("a string or at most {} of them", most));
  std::vector<std::string> texts;
  for (const Json& item : value) {
    KVASIR_TRY(texts.emplace_back(), as_string(item));
  }
  return texts;
}

}  // namespace kvasir::serve
