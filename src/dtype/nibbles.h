// Shared by q4_0, q4_1, q5_0 and q5_1: 32 integers of 4 or 5 bits with one f16 scale, and either a fixed middle that
// stands for 0 or an f16 minimum. Byte j of 16 has the low four bits of elements j and j + 16. With 5 bits, a 32-bit
// word comes before them; its bit j is the fifth bit of element j. Source: ggml-org/ggml, ggml-common.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "dtype/integer_row_ops.h"

namespace kvasir::nibbles {

template <int kBits>
inline constexpr int kPackedBytes = kBits == 5 ? 20 : 16;

template <int kBits>
void unpack(const std::byte* packed, int32_t* w) {
  uint32_t fifths = 0;
  if constexpr (kBits == 5) {
    std::memcpy(&fifths, packed, sizeof fifths);
    packed += sizeof fifths;
  }
  for (int j = 0; j < 16; ++j) {
    w[j] = std::to_integer<int>(packed[j]) & 15;
    w[j + 16] = std::to_integer<int>(packed[j]) >> 4;
  }
  for (int j = 0; j < 32; ++j) w[j] |= static_cast<int32_t>(fifths >> j & 1u) << 4;
}

template <int kBits>
void pack(const int* w, std::byte* packed) {
  if constexpr (kBits == 5) {
    uint32_t fifths = 0;
    for (int j = 0; j < 32; ++j) fifths |= (static_cast<uint32_t>(w[j]) >> 4 & 1u) << j;
    std::memcpy(packed, &fifths, sizeof fifths);
    packed += sizeof fifths;
  }
  for (int j = 0; j < 16; ++j) packed[j] = static_cast<std::byte>((w[j] & 15) | (w[j + 16] & 15) << 4);
}

/// Elements are scale * (w - middle).
template <int kBits>
struct Centered {
  static constexpr int kBytes = 2 + kPackedBytes<kBits>, kMiddle = 1 << (kBits - 1);

  static IntegerBlock read(const std::byte* block, int) {
    IntegerBlock out{.w = {}, .scale = half_at(block)};
    unpack<kBits>(block + 2, out.w);
    for (int32_t& w : out.w) w -= kMiddle;
    return out;
  }
  // The value furthest from 0 becomes exactly -kMiddle: there is one more integer below 0 than above.
  static int64_t encode(const float* src, std::byte* dst, int64_t n) {
    int64_t saturated = 0;
    for (int64_t i = 0; i < n; i += kActElems, dst += kBytes) {
      saturated += put_half(range_of(src + i, kActElems).extreme() / -kMiddle, dst);
      const float d = half_at(dst);
      int w[kActElems];
      for (int j = 0; j < kActElems; ++j) w[j] = kMiddle + steps(src[i + j], d, -kMiddle, kMiddle - 1);
      pack<kBits>(w, dst + 2);
    }
    return saturated;
  }
  using RowOps = IntegerRowOps<kActElems, kBytes, false, read>;
};

/// Elements are scale * w + minimum.
template <int kBits>
struct Ranged {
  static constexpr int kBytes = 4 + kPackedBytes<kBits>, kMost = (1 << kBits) - 1;

  static IntegerBlock read(const std::byte* block, int) {
    IntegerBlock out{.w = {}, .scale = half_at(block), .offset = half_at(block + 2)};
    unpack<kBits>(block + 4, out.w);
    return out;
  }
  static int64_t encode(const float* src, std::byte* dst, int64_t n) {
    int64_t saturated = 0;
    for (int64_t i = 0; i < n; i += kActElems, dst += kBytes) {
      const Range range = range_of(src + i, kActElems);
      saturated += put_half((range.high - range.low) / kMost, dst) + put_half(range.low, dst + 2);
      const float d = half_at(dst), low = half_at(dst + 2);
      int w[kActElems];
      for (int j = 0; j < kActElems; ++j) w[j] = steps(src[i + j] - low, d, 0, kMost);
      pack<kBits>(w, dst + 4);
    }
    return saturated;
  }
  using RowOps = IntegerRowOps<kActElems, kBytes, true, read>;
};

}  // namespace kvasir::nibbles
