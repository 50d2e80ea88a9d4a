// The names of error kinds.
#include <kvasir/result.h>

#include <array>

namespace kvasir {

std::string_view kind_name(Error::Kind kind) {
  static constexpr std::array<std::string_view, 12> kNames{"bad_argument", "too_long", "no_room",   "not_found",
                                                           "unsupported",  "damaged",  "io",        "not_finite",
                                                           "busy",         "closing",  "timed_out", "internal"};
  const auto index = static_cast<size_t>(kind);
  return index < kNames.size() ? kNames[index] : "internal";
}

}  // namespace kvasir
