// JSON for output: the objects that commands print for programs. Parsing JSON is not here.
#pragma once

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace kvasir::cli {

/// A JSON value as text. Only json.cc includes the JSON library, since it compiles longer than any command.
class Json {
 public:
  struct Field;

  /// null
  Json() : text_("null") {}
  template <std::same_as<bool> T>
  Json(T value) : text_(value ? "true" : "false") {}
  template <std::integral T>
  requires(!std::same_as<T, bool>) Json(T value) : text_(std::to_string(value)) {}
  /// NaN and infinity become null.
  Json(double value);
  /// Bytes that are not UTF-8 become U+FFFD.
  Json(std::string_view value);
  Json(const std::string& value) : Json(std::string_view(value)) {}
  Json(const char* value) : Json(std::string_view(value)) {}
  template <class T>
  Json(const std::vector<T>& values) : kind_(Kind::array) {
    for (const T& value : values) push_back(value);
  }
  /// An object.
  Json(std::initializer_list<Field> fields);

  static Json array() { return Json(Kind::array); }
  static Json object() { return Json(Kind::object); }
  /// Requires: `text` is JSON.
  static Json raw(std::string text);

  /// Requires: this is an array.
  void push_back(const Json& item) { items_.push_back(item.text()); }
  /// Requires: this is an object.
  void set(const std::string& key, const Json& value) { fields_[key] = value.text(); }

  /// On one line, without spaces; keys of an object in ascending order.
  std::string text() const;

 private:
  enum class Kind { scalar, array, object };
  explicit Json(Kind kind) : kind_(kind) {}

  Kind kind_ = Kind::scalar;
  std::string text_;
  std::vector<std::string> items_;
  std::map<std::string, std::string> fields_;
};

struct Json::Field {
  std::string key;
  Json value;
};

}  // namespace kvasir::cli
