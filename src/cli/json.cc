// Values of JSON as text.
#include "cli/json.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace kvasir::cli {

Json::Json(double value) : text_(nlohmann::json(value).dump()) {}

Json::Json(std::string_view value)
    : text_(nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)) {}

Json::Json(std::initializer_list<Field> fields) : kind_(Kind::object) {
  for (const Field& field : fields) set(field.key, field.value);
}

Json Json::raw(std::string text) {
  Json json;
  json.text_ = std::move(text);
  return json;
}

std::string Json::text() const {
  std::string all;
  switch (kind_) {
    case Kind::scalar:
      return text_;
    case Kind::array:
      for (const std::string& item : items_) all += (all.empty() ? "" : ",") + item;
      return "[" + all + "]";
    case Kind::object:
      for (const auto& [key, value] : fields_)
        all += fmt::format("{}{}:{}", all.empty() ? "" : ",", Json(key).text(), value);
      return "{" + all + "}";
  }
  return text_;
}

}  // namespace kvasir::cli
