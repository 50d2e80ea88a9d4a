// Shared by q4_0, q4_1, q5_0 and q5_1: 32 integers of 4 or 5 bits with one f16 scale, and either a fixed middle that
// stands for 0 or an f16 minimum. Byte j of 16 has the low four bits of elements j and j + 16. With 5 bits, a 32-bit
// word comes before them; its bit j is the fifth bit of element j. Source: ggml-org/ggml, ggml-common.h.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "dtype/affine_search.h"
#include "dtype/centered_search.h"
#include "dtype/error_weights.h"
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
  static int64_t encode_by(const float* src, const float* importance, std::byte* dst, int64_t n) {
    using Search = CenteredSearch<kActElems, kMiddle>;
    int64_t saturated = 0;
    for (int64_t i = 0; i < n; i += kActElems, dst += kBytes) {
      const ErrorWeights<kActElems> weights(src, importance, i);
      const bool finite = !std::isnan(range_of(src + i, kActElems).low);
      saturated += put_half(finite ? static_cast<float>(Search::best_scale(src + i, weights.of)) : NAN, dst);
      int w[kActElems] = {};
      if (finite) Search::round_to(half_at(dst), src + i, w);
      for (int& each : w) each += kMiddle;
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
  static int64_t encode_by(const float* src, const float* importance, std::byte* dst, int64_t n) {
    using Search = affine_search::PartSearch<kActElems, true>;
    int64_t saturated = 0;
    for (int64_t i = 0; i < n; i += kActElems, dst += kBytes) {
      const ErrorWeights<kActElems> weights(src, importance, i);
      const bool finite = !std::isnan(range_of(src + i, kActElems).low);
      affine_search::Fit fit{NAN, NAN};
      if (finite) fit = Search::best_fit(src + i, weights.of, kMost);
      saturated += put_half(static_cast<float>(fit.scale), dst) + put_half(static_cast<float>(-fit.minimum), dst + 2);
      float w[kActElems] = {};
      if (finite) Search::round_to({half_at(dst), -half_at(dst + 2)}, src + i, kMost, w);
      int whole[kActElems];
      std::copy(w, w + kActElems, whole);
      pack<kBits>(whole, dst + 4);
    }
    return saturated;
  }
  using RowOps = IntegerRowOps<kActElems, kBytes, true, read>;
};

}  // namespace kvasir::nibbles
