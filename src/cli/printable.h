// Text from outside on one line of a terminal: control characters are spelled out.
#pragma once

#include <string>
#include <string_view>

#include <fmt/format.h>

namespace kvasir::cli {

inline std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n')
      out += "\\n";
    else if (byte < 0x20 || byte == 0x7f)
      out += fmt::format("\\x{:02X}", byte);
    else
      out += c;
  }
  return out;
}

}  // namespace kvasir::cli
