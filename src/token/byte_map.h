// GPT-2's spelling of bytes: each of the 256 bytes is one printable character, so that a vocabulary is plain text.
// Source: openai/gpt-2 src/encoder.py, `bytes_to_unicode`.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "token/utf8.h"

namespace kvasir {

/// One past the last character that spells a byte: 188 bytes spell themselves, the other 68 are U+0100 and up.
inline constexpr char32_t kByteCharEnd = 0x100 + 68;

constexpr bool byte_spells_itself(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
}

constexpr std::array<char32_t, 256> make_byte_chars() {
  std::array<char32_t, 256> chars{};
  char32_t next = 0x100;
  for (int b = 0; b < 256; ++b) {
    chars[static_cast<std::size_t>(b)] = byte_spells_itself(b) ? static_cast<char32_t>(b) : next++;
  }
  return chars;
}
inline constexpr std::array<char32_t, 256> kByteChars = make_byte_chars();

constexpr std::array<short, kByteCharEnd> make_char_bytes() {
  std::array<short, kByteCharEnd> bytes{};
  for (short& byte : bytes) byte = -1;
  for (std::size_t b = 0; b < 256; ++b) bytes[kByteChars[b]] = static_cast<short>(b);
  return bytes;
}
/// The byte that a character spells, or -1.
inline constexpr std::array<short, kByteCharEnd> kCharBytes = make_char_bytes();

inline std::string spell_bytes(std::string_view bytes) {
  std::string spelled;
  spelled.reserve(bytes.size() + bytes.size() / 4);
  for (const char byte : bytes) utf8_append(spelled, kByteChars[static_cast<unsigned char>(byte)]);
  return spelled;
}

/// Returns the bytes that `spelled` stands for; nullopt if one of its characters spells no byte.
inline std::optional<std::string> unspell_bytes(std::string_view spelled) {
  std::string bytes;
  while (!spelled.empty()) {
    const Utf8Step step = utf8_step(spelled);
    if (step.kind != Utf8Kind::kChar || step.code >= kByteCharEnd || kCharBytes[step.code] < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(static_cast<unsigned char>(kCharBytes[step.code])));
    spelled.remove_prefix(step.length);
  }
  return bytes;
}

}  // namespace kvasir
