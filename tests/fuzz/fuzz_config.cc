// Any bytes as a configuration: an error, or an object whose getters all return and whose text parses back to the same
// object.
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "format/config_view.h"

namespace {

void require(bool holds) {
  if (!holds) __builtin_trap();
}

void ask_everything(const kvasir::ConfigView& config) {
  for (const std::string& key : config.keys()) {
    require(config.has(key));
    const auto integer = config.get_int(key, -100, 100);
    require(!integer || (*integer >= -100 && *integer <= 100));
    const auto number = config.get_number(key, -1e300, 1e300);
    require(!number || std::isfinite(*number));
    require(!integer || (number && *number == static_cast<double>(*integer)));
    const auto list = config.get_ints_or_empty(key);
    require(!integer || (list && list->size() == 1 && list->front() == *integer));
    const bool text = config.get_string(key).has_value(), flag = config.get_bool_or(key, false).has_value();
    const auto object = config.object(key);
    require(int{text} + int{flag} + int{number.has_value()} + int{object.has_value()} <= 1);
    if (!number) require(number.error().what.size() < 4096 + key.size());
    if (object) ask_everything(*object);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto config = kvasir::ConfigView::parse(text, "fuzz");
  if (!config) {
    require(!config.error().what.empty() && config.error().what.size() < 4096);
    return 0;
  }
  ask_everything(*config);
  const std::string written = config->json_text();
  const auto again = kvasir::ConfigView::parse(written, "fuzz");
  require(again.has_value() && again->json_text() == written);
  kvasir::ConfigView changed = *config;
  changed.set("a", 7);
  require(config->json_text() == written && *changed.get_int("a", 7, 7) == 7);
  return 0;
}
