// A checked reader over a model's configuration (one JSON object): each value is read with its expected type and range,
// every error names the file and the key, and unread keys can be listed. It does not know which keys a model has.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <kvasir/result.h>

namespace kvasir {

/// Behaves as a value: a copy is independent of the original, except that both record in one place which keys were
/// read. Reading is safe from many threads, set() is not. A key whose value is null counts as absent, except in
/// is_null().
class ConfigView {
 public:
  /// Makes an empty object.
  ConfigView();
  /// `where` names the text in errors. Fails on a text over 16 MB, anything but one object, duplicate keys, NaN or
  /// Infinity, more than 64 levels, and bytes after the object.
  static Result<ConfigView> parse(std::string_view json_text, std::string where);
  /// Reads and parses a file; its path is `where`.
  static Result<ConfigView> read(const std::filesystem::path& path);

  bool has(std::string_view key) const;

  // Fail if the value is absent, has another type or is outside min..max.
  Result<int64_t> get_int(std::string_view key, int64_t min, int64_t max) const;
  Result<double> get_number(std::string_view key, double min, double max) const;
  Result<std::string> get_string(std::string_view key) const;
  // The same, but an absent key returns the fallback (unchecked). A wrong type or range is still an error.
  Result<int64_t> get_int_or(std::string_view key, int64_t fallback, int64_t min, int64_t max) const;
  Result<double> get_number_or(std::string_view key, double fallback, double min, double max) const;
  Result<bool> get_bool_or(std::string_view key, bool fallback) const;
  Result<std::string> get_string_or(std::string_view key, std::string fallback) const;
  /// One integer or a list of integers; empty if absent.
  Result<std::vector<int64_t>> get_ints_or_empty(std::string_view key) const;
  /// A list of strings or of numbers; empty if absent.
  Result<std::vector<std::string>> get_strings_or_empty(std::string_view key) const;
  Result<std::vector<double>> get_numbers_or_empty(std::string_view key) const;
  /// True for a key whose value is null: in some models' files null means something other than no key.
  bool is_null(std::string_view key) const;
  /// Returns the object under `key`; nullopt if absent or not an object, so check has() if another type must be
  /// refused.
  std::optional<ConfigView> object(std::string_view key) const;

  /// Keys with a value, sorted.
  std::vector<std::string> keys() const;
  /// Returns the keys with a value that no call on this view, its copies or its objects has read, each with its full
  /// path: "rope_scaling.factor". An object not opened with object() is one key.
  std::vector<std::string> unread() const;
  /// Returns the value at a path from unread() as JSON; "a list" or "an object" if it is one that is not empty. Returns
  /// "" if there is no value.
  std::string value_text(std::string_view path) const;
  /// The name of the text, as in errors.
  const std::string& where() const;
  /// The object as compact JSON with sorted keys.
  std::string json_text() const;

  void set(std::string_view key, bool value);
  void set(std::string_view key, int value);
  void set(std::string_view key, int64_t value);
  void set(std::string_view key, double value);
  void set(std::string_view key, const char* value);
  void set(std::string_view key, std::string_view value);
  void set(std::string_view key, const std::vector<int64_t>& value);
  void set(std::string_view key, const std::vector<double>& value);
  void set(std::string_view key, const ConfigView& object);
  void remove(std::string_view key);
  /// Copies the values of those `keys` that this object lacks from another object of the same file. Reading such a key
  /// here marks it as read there.
  void complete_from(const ConfigView& other, std::initializer_list<std::string_view> keys);

 private:
  struct Impl;
  class ReadKeys;
  explicit ConfigView(std::shared_ptr<Impl> impl);
  tl::unexpected<Error> refuse(std::string_view key, const std::string& why) const;
  bool holds(std::string_view key) const;  // like has(), but does not mark the key as read
  template <class T>
  void assign(std::string_view key, T value);

  std::shared_ptr<Impl> impl_;  // shared between copies until one of them is set()
};

}  // namespace kvasir
