// Shared by q4_k and q5_k: 256 elements in 8 parts of 32, element = scale * w - minimum. A part's scale and minimum are
// 6-bit multiples of the block's two f16 units. Contains their packing.
// Source of the layout: ggml-org/ggml, ggml-common.h (block_q4_K, block_q5_K) and ggml-quants.c (get_scale_min_k4).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "dtype/affine_search.h"

namespace kvasir::k_affine {

using affine_search::Multiples;

inline constexpr int kElems = 256, kParts = 8, kPart = 32;
inline constexpr int kHeaderBytes = 16;  // f16 unit of the scales, f16 unit of the minimums, 12 bytes of both
inline constexpr int kMostScale = 63;

/// Unpacks part p. For p < 4, byte p has scale p and byte p + 4 minimum p in the low 6 bits. For p >= 4, byte p + 4 has
/// the low 4 bits of scale p and of minimum p; their high 2 bits are the top bits of bytes p - 4 and p.
inline Multiples get_six(const std::byte* packed, int part) {
  const auto at = [&](int i) { return std::to_integer<int>(packed[i]); };
  if (part < 4) return {at(part) & 63, at(part + 4) & 63};
  return {(at(part + 4) & 15) | at(part - 4) >> 6 << 4, at(part + 4) >> 4 | at(part) >> 6 << 4};
}

inline void put_sixes(const std::array<Multiples, kParts>& six, std::byte* packed) {
  for (size_t p = 0; p < 4; ++p) {
    const Multiples low = six[p], high = six[p + 4];
    packed[p] = static_cast<std::byte>(low.scale | high.scale >> 4 << 6);
    packed[p + 4] = static_cast<std::byte>(low.minimum | high.minimum >> 4 << 6);
    packed[p + 8] = static_cast<std::byte>((high.scale & 15) | (high.minimum & 15) << 4);
  }
}

/// The part's scale and offset; w stays empty. Both products are exact: 11 bits times 6.
inline IntegerBlock scales_of(const std::byte* block, int part) {
  const Multiples six = get_six(block + 4, part);
  return {.w = {},
          .scale = half_at(block) * static_cast<float>(six.scale),
          .offset = -(half_at(block + 2) * static_cast<float>(six.minimum))};
}

/// Two parts share 32 bytes: the even part is in the low four bits.
inline void get_nibbles(const std::byte* packed, int part, int32_t* w) {
  const std::byte* bytes = packed + part / 2 * kPart;
  for (int j = 0; j < kPart; ++j) w[j] = std::to_integer<int>(bytes[j]) >> part % 2 * 4 & 15;
}
inline void put_nibbles(const int* w, std::byte* packed) {
  for (int i = 0; i < kElems / 2; ++i) {
    const int* low = w + i / kPart * 2 * kPart + i % kPart;
    packed[i] = static_cast<std::byte>((low[0] & 15) | (low[kPart] & 15) << 4);
  }
}

/// Writes the block's header, and the 256 integers to w. Returns how many of its two units saturated.
inline int64_t encode_header(const float* x, const float* weight, int most, std::byte* block, int* w) {
  std::array<Multiples, kParts> six{};
  const int64_t saturated = affine_search::Search<kPart, kMostScale>::fit(x, weight, most, block, &six, w);
  put_sixes(six, block + 4);
  return saturated;
}

}  // namespace kvasir::k_affine
