// UTF-8, one character at a time, with the three results that a stream needs: whole, incomplete, invalid. Normalisation
// and character classes live elsewhere (normalize.h, regex.h).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kvasir {

enum class Utf8Kind { kChar, kIncomplete, kInvalid };

/// The first character of a text. `length` [bytes]: of the character, of the part that is there (kIncomplete), or
/// (kInvalid) of the longest prefix of an ill-formed sequence that one U+FFFD replaces (Unicode 15, section 3.9,
/// "maximal subpart").
struct Utf8Step {
  Utf8Kind kind;
  std::size_t length;
  char32_t code;
};

/// Requires: `text` is not empty.
inline Utf8Step utf8_step(std::string_view text) {
  const unsigned lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {Utf8Kind::kChar, 1, lead};
  if (lead < 0xC2 || lead > 0xF4) return {Utf8Kind::kInvalid, 1, 0};
  const std::size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  char32_t code = lead & (0x7Fu >> length);
  // The second byte's range excludes overlong forms, surrogates and values above U+10FFFF.
  unsigned low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  unsigned high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  for (std::size_t i = 1; i < length; ++i) {
    if (i >= text.size()) return {Utf8Kind::kIncomplete, i, 0};
    const unsigned byte = static_cast<unsigned char>(text[i]);
    if (byte < low || byte > high) return {Utf8Kind::kInvalid, i, 0};
    code = code << 6 | (byte & 0x3Fu);
    low = 0x80;
    high = 0xBF;
  }
  return {Utf8Kind::kChar, length, code};
}

/// Returns the number of bytes before the first one that is not part of a whole character.
inline std::size_t utf8_valid_prefix(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const Utf8Step step = utf8_step(text.substr(at));
    if (step.kind != Utf8Kind::kChar) break;
    at += step.length;
  }
  return at;
}

inline bool utf8_is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

/// Requires: `code` is a Unicode scalar value.
inline void utf8_append(std::string& out, char32_t code) {
  const auto put = [&out](char32_t byte) { out.push_back(static_cast<char>(static_cast<unsigned char>(byte))); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

/// Returns at most 60 bytes of `text` in quotes, for an error message: controls and ill-formed bytes as \\xHH.
inline std::string quote(std::string_view text) {
  constexpr std::size_t kMost = 60;
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out = "\"";
  std::size_t at = 0;
  while (at < text.size() && at < kMost) {
    const Utf8Step step = utf8_step(text.substr(at));
    const auto byte = static_cast<unsigned char>(text[at]);
    const bool plain = step.kind == Utf8Kind::kChar && byte >= 0x20 && byte != 0x7F;
    const std::size_t length = plain ? step.length : 1;
    if (plain) {
      out.append(text.substr(at, length));
    } else {
      out.append("\\x").append({kHex[byte >> 4], kHex[byte & 15]});
    }
    at += length;
  }
  return out + (at < text.size() ? "...\"" : "\"");
}

/// Unicode's White_Space property.
inline bool unicode_is_space(char32_t code) {
  return (code >= 0x09 && code <= 0x0D) || code == 0x20 || code == 0x85 || code == 0xA0 || code == 0x1680 ||
         (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 || code == 0x202F || code == 0x205F ||
         code == 0x3000;
}

}  // namespace kvasir
