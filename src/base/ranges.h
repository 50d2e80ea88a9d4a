// Checks of numbers that callers pass, with errors of one form: "0 sequences (try: 1 or more)".
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include <kvasir/result.h>

namespace kvasir {

/// Errors: value < least. `unit` is what the number counts, `where` the parameter.
inline Result<void> check_at_least(int64_t value, int64_t least, std::string_view unit, std::string_view where) {
  if (value >= least) return {};
  return fail(Error::bad_argument, fmt::format("{} {}", value, unit), std::string(where),
              fmt::format("{} or more", least));
}

/// Checks each value of a list. Errors: one is too small, or the list is empty.
inline Result<void> check_all_at_least(std::span<const int> values, int64_t least, std::string_view unit,
                                       std::string_view where) {
  if (values.empty())
    return fail(Error::bad_argument, fmt::format("an empty list of {}", unit), std::string(where),
                "one or more numbers");
  for (const int value : values)
    if (auto checked = check_at_least(value, least, unit, where); !checked) return checked;
  return {};
}

}  // namespace kvasir
