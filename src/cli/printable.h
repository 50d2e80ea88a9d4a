// Makes text from outside safe for one line of a terminal: control characters are escaped.
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

/// The first `bytes` bytes of a text, or up to 3 fewer, so that no UTF-8 character is cut.
inline std::string cut_utf8(std::string_view text, size_t bytes) {
  while (bytes < text.size() && bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xC0) == 0x80) --bytes;
  return std::string(text.substr(0, bytes));
}

}  // namespace kvasir::cli
