// The packing of 32 numbers of 4 or 5 bits that q4_0, q4_1, q5_0 and q5_1 share: byte j of 16 holds the low four bits
// of element j and of element j + 16; bit j of a 32-bit word is the fifth bit of element j. Source: ggml-org/ggml,
// ggml-common.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace kvasir {

inline void unpack_nibbles(const std::byte* packed, int32_t* w) {
  for (int j = 0; j < 16; ++j) {
    w[j] = std::to_integer<int>(packed[j]) & 15;
    w[j + 16] = std::to_integer<int>(packed[j]) >> 4;
  }
}
inline void add_fifth_bits(const std::byte* word, int32_t* w) {
  uint32_t bits;
  std::memcpy(&bits, word, sizeof bits);
  for (int j = 0; j < 32; ++j) w[j] |= static_cast<int32_t>(bits >> j & 1u) << 4;
}
inline void pack_nibbles(const int* w, std::byte* packed) {
  for (int j = 0; j < 16; ++j) packed[j] = static_cast<std::byte>((w[j] & 15) | (w[j + 16] & 15) << 4);
}
inline void pack_fifth_bits(const int* w, std::byte* word) {
  uint32_t bits = 0;
  for (int j = 0; j < 32; ++j) bits |= (static_cast<uint32_t>(w[j]) >> 4 & 1u) << j;
  std::memcpy(word, &bits, sizeof bits);
}

}  // namespace kvasir
