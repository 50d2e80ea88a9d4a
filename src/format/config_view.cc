// The checked configuration reader, on top of the strict JSON tree.
#include "format/config_view.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/files.h"
#include "base/mutex.h"
#include "base/quote.h"
#include "format/strict_json.h"

namespace kvasir {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxConfigBytes = size_t{16} << 20;

/// Describes the value, short enough for an error.
std::string describe(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  if (value.is_string()) return in_quotes(value.get_ref<const std::string&>());
  return value.dump();
}

bool fits_int64(const Json& value) {
  return value.is_number_integer() && (!value.is_number_unsigned() || value.get<uint64_t>() <= uint64_t{INT64_MAX});
}

}  // namespace

// The keys that were read, by their full path.
class ConfigView::ReadKeys {
 public:
  void add(std::string path) {
    const MutexLock lock(mutex_);
    read_.insert(std::move(path));
  }
  /// From now on the object's keys count one by one.
  void add_opened(std::string path) {
    const MutexLock lock(mutex_);
    opened_.insert(std::move(path));
  }
  /// Reading `used_as` from now on counts as reading `path`.
  void add_alias(std::string path, std::string used_as) {
    const MutexLock lock(mutex_);
    aliases_.emplace(std::move(path), std::move(used_as));
  }
  void list_unread(const Json& object, const std::string& prefix, std::vector<std::string>* out) const {
    const MutexLock lock(mutex_);
    walk(object, prefix, out);
  }

 private:
  void walk(const Json& object, const std::string& prefix, std::vector<std::string>* out) const
      KVASIR_REQUIRES(mutex_) {
    for (const auto& [key, value] : object.items()) {
      const std::string path = prefix + key;
      if (value.is_null()) continue;
      if (opened_.contains(path))
        walk(value, path + ".", out);
      else if (const auto alias = aliases_.find(path);
               !read_.contains(path) && (alias == aliases_.end() || !read_.contains(alias->second)))
        out->push_back(path);
    }
  }

  mutable Mutex mutex_;
  std::set<std::string> read_ KVASIR_GUARDED_BY(mutex_), opened_ KVASIR_GUARDED_BY(mutex_);
  std::map<std::string, std::string> aliases_ KVASIR_GUARDED_BY(mutex_);
};

struct ConfigView::Impl {
  Json tree = Json::object();
  std::string where;
  std::string prefix;  // keys that lead to this object, "rope_scaling."
  std::shared_ptr<ReadKeys> read_keys = std::make_shared<ReadKeys>();

  /// Returns nullptr if absent or null; else marks the key as read.
  const Json* find(std::string_view key) const {
    const auto it = tree.find(key);
    if (it == tree.end() || it->is_null()) return nullptr;
    read_keys->add(prefix + std::string(key));
    return &*it;
  }
};

ConfigView::ConfigView() : impl_(std::make_shared<Impl>()) {}
ConfigView::ConfigView(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<ConfigView> ConfigView::parse(std::string_view json_text, std::string where) {
  if (json_text.size() > kMaxConfigBytes)
    return fail(Error::unsupported, fmt::format("{} bytes, at most {} allowed", json_text.size(), kMaxConfigBytes),
                std::move(where));
  KVASIR_TRY(Json tree, parse_strict_json(json_text, where));
  if (!tree.is_object()) return fail(Error::damaged, "the configuration is not a JSON object", std::move(where));
  auto impl = std::make_shared<Impl>();
  impl->tree = std::move(tree);
  impl->where = std::move(where);
  return ConfigView(std::move(impl));
}

Result<ConfigView> ConfigView::read(const std::filesystem::path& path) {
  KVASIR_TRY(const std::string text, read_text_file(path, kMaxConfigBytes));
  return parse(text, path.string());
}

bool ConfigView::has(std::string_view key) const { return impl_->find(key) != nullptr; }

tl::unexpected<Error> ConfigView::refuse(std::string_view key, const std::string& why) const {
  return fail(Error::damaged, fmt::format("{} {}", in_quotes(impl_->prefix + std::string(key)), why), impl_->where);
}

Result<int64_t> ConfigView::get_int(std::string_view key, int64_t min, int64_t max) const {
  const Json* value = impl_->find(key);
  if (value == nullptr) return refuse(key, "is missing");
  if (!value->is_number_integer()) return refuse(key, fmt::format("is {}, expected an integer", describe(*value)));
  if (!fits_int64(*value) || value->get<int64_t>() < min || value->get<int64_t>() > max)
    return refuse(key, fmt::format("is {}, allowed {}..{}", describe(*value), min, max));
  return value->get<int64_t>();
}

Result<double> ConfigView::get_number(std::string_view key, double min, double max) const {
  const Json* value = impl_->find(key);
  if (value == nullptr) return refuse(key, "is missing");
  if (!value->is_number()) return refuse(key, fmt::format("is {}, expected a number", describe(*value)));
  const double number = value->get<double>();
  if (!(number >= min && number <= max))
    return refuse(key, fmt::format("is {}, allowed {}..{}", describe(*value), min, max));
  return number;
}

Result<std::string> ConfigView::get_string(std::string_view key) const {
  const Json* value = impl_->find(key);
  if (value == nullptr) return refuse(key, "is missing");
  if (!value->is_string()) return refuse(key, fmt::format("is {}, expected a string", describe(*value)));
  return value->get<std::string>();
}

Result<int64_t> ConfigView::get_int_or(std::string_view key, int64_t fallback, int64_t min, int64_t max) const {
  if (!has(key)) return fallback;
  return get_int(key, min, max);
}

Result<double> ConfigView::get_number_or(std::string_view key, double fallback, double min, double max) const {
  if (!has(key)) return fallback;
  return get_number(key, min, max);
}

Result<bool> ConfigView::get_bool_or(std::string_view key, bool fallback) const {
  const Json* value = impl_->find(key);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) return refuse(key, fmt::format("is {}, expected true or false", describe(*value)));
  return value->get<bool>();
}

Result<std::string> ConfigView::get_string_or(std::string_view key, std::string fallback) const {
  if (!has(key)) return fallback;
  return get_string(key);
}

Result<std::vector<int64_t>> ConfigView::get_ints_or_empty(std::string_view key) const {
  const Json* value = impl_->find(key);
  std::vector<int64_t> out;
  if (value == nullptr) return out;
  if (value->is_array()) {
    for (const Json& item : *value) {
      if (!fits_int64(item)) return refuse(key, fmt::format("holds {}, expected integers", describe(item)));
      out.push_back(item.get<int64_t>());
    }
    return out;
  }
  if (!fits_int64(*value)) return refuse(key, fmt::format("is {}, expected an integer or a list", describe(*value)));
  out.push_back(value->get<int64_t>());
  return out;
}

Result<std::vector<std::string>> ConfigView::get_strings_or_empty(std::string_view key) const {
  const Json* value = impl_->find(key);
  std::vector<std::string> out;
  if (value == nullptr) return out;
  if (!value->is_array()) return refuse(key, fmt::format("is {}, expected a list of words", describe(*value)));
  for (const Json& item : *value) {
    if (!item.is_string()) return refuse(key, fmt::format("holds {}, expected words", describe(item)));
    out.push_back(item.get<std::string>());
  }
  return out;
}

Result<std::vector<double>> ConfigView::get_numbers_or_empty(std::string_view key) const {
  const Json* value = impl_->find(key);
  std::vector<double> out;
  if (value == nullptr) return out;
  if (!value->is_array()) return refuse(key, fmt::format("is {}, expected a list of numbers", describe(*value)));
  for (const Json& item : *value) {
    if (!item.is_number()) return refuse(key, fmt::format("holds {}, expected numbers", describe(item)));
    out.push_back(item.get<double>());
  }
  return out;
}

bool ConfigView::is_null(std::string_view key) const {
  const auto it = impl_->tree.find(key);
  return it != impl_->tree.end() && it->is_null();
}

std::optional<ConfigView> ConfigView::object(std::string_view key) const {
  const Json* value = impl_->find(key);
  if (value == nullptr || !value->is_object()) return std::nullopt;
  const std::string path = impl_->prefix + std::string(key);
  impl_->read_keys->add_opened(path);
  return ConfigView(std::make_shared<Impl>(Impl{*value, impl_->where, path + ".", impl_->read_keys}));
}

std::vector<std::string> ConfigView::keys() const {
  std::vector<std::string> out;
  for (const auto& [key, value] : impl_->tree.items())
    if (!value.is_null()) out.push_back(key);
  return out;
}

std::vector<std::string> ConfigView::unread() const {
  std::vector<std::string> out;
  impl_->read_keys->list_unread(impl_->tree, impl_->prefix, &out);
  return out;
}

std::string ConfigView::value_text(std::string_view path) const {
  const Json* value = &impl_->tree;
  for (size_t begin = impl_->prefix.size(); begin <= path.size();) {
    const size_t end = std::min(path.find('.', begin), path.size());
    const auto it = value->find(path.substr(begin, end - begin));
    if (!value->is_object() || it == value->end()) return {};
    value = &*it;
    begin = end + 1;
  }
  const bool filled = value->is_structured() && !value->empty();
  return filled || value->is_string() ? describe(*value) : value->dump();
}

const std::string& ConfigView::where() const { return impl_->where; }

std::string ConfigView::json_text() const { return impl_->tree.dump(-1, ' ', false, Json::error_handler_t::replace); }

template <class T>
void ConfigView::assign(std::string_view key, T value) {
  if (impl_.use_count() > 1) impl_ = std::make_shared<Impl>(*impl_);
  impl_->tree[std::string(key)] = std::move(value);
}

bool ConfigView::holds(std::string_view key) const {
  const auto it = impl_->tree.find(key);
  return it != impl_->tree.end() && !it->is_null();
}

void ConfigView::complete_from(const ConfigView& other, std::initializer_list<std::string_view> keys) {
  for (std::string_view key : keys)
    if (const auto it = other.impl_->tree.find(key); it != other.impl_->tree.end() && !it->is_null() && !holds(key)) {
      impl_->read_keys->add_alias(other.impl_->prefix + std::string(key), impl_->prefix + std::string(key));
      assign(key, *it);
    }
}

void ConfigView::set(std::string_view key, bool value) { assign(key, value); }
void ConfigView::set(std::string_view key, int value) { assign(key, int64_t{value}); }
void ConfigView::set(std::string_view key, int64_t value) { assign(key, value); }
void ConfigView::set(std::string_view key, double value) { assign(key, value); }
void ConfigView::set(std::string_view key, const char* value) { assign(key, std::string(value)); }
void ConfigView::set(std::string_view key, std::string_view value) { assign(key, std::string(value)); }
void ConfigView::set(std::string_view key, const std::vector<int64_t>& value) { assign(key, value); }
void ConfigView::set(std::string_view key, const std::vector<double>& value) { assign(key, value); }
void ConfigView::set(std::string_view key, const ConfigView& object) { assign(key, object.impl_->tree); }

void ConfigView::remove(std::string_view key) { assign(key, nullptr); }

}  // namespace kvasir
