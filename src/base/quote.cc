// Escapes control characters and truncates long text.
#include "base/quote.h"

#include <fmt/format.h>

namespace kvasir {

std::string in_quotes(std::string_view text) {
  constexpr size_t kLongest = 80;
  std::string out = "\"";
  for (const char c : text.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f)
      out += fmt::format("\\x{:02x}", byte);
    else
      out += c;
  }
  return out + (text.size() > kLongest ? "...\"" : "\"");
}

}  // namespace kvasir
