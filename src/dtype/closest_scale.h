// The scale of a block of 32 numbers of K or V: of 16 candidate scales, the one with the least squared error
// (docs/numerics.md). Weights have searches of their own (centered_search.h).
#pragma once

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "dtype/integer_row_ops.h"

namespace kvasir {

/// Integers range from -most to most - 1. With scale t of 16, the number furthest from 0 becomes step * t - first.
struct ScaleSearch {
  int most;
  float first, step;
};

namespace closest_scale {

inline constexpr int kScales = 16;

/// Four lanes of the compiler's own vector type: without it the loops compile to branches.
using Four = float __attribute__((vector_size(16)));

inline Four four_at(const float* x) {
  Four v;
  std::memcpy(&v, x, sizeof v);
  return v;
}

/// Returns b if a is NaN.
inline Four larger(Four a, Four b) {
#if defined(__SSE2__)
  return _mm_max_ps(a, b);
#else
  return a > b ? a : b;
#endif
}
inline Four smaller(Four a, Four b) {
#if defined(__SSE2__)
  return _mm_min_ps(a, b);
#else
  return a < b ? a : b;
#endif
}

/// Rounds to the nearest integer (ties to even) and clamps to the range.
inline Four whole(Four v, const ScaleSearch& s) {
  constexpr float kNoFraction = 0x1.8p23f;  // floats of this size are 1 apart
  const Four zero{}, low = zero - static_cast<float>(s.most), high = zero + static_cast<float>(s.most - 1);
  return (smaller(larger(v, low), high) + kNoFraction) - kNoFraction;
}

/// Sum of the squared errors of 32 numbers stored in steps of d, added in their order.
inline Four squared_loss(const float* x, Four d, const ScaleSearch& s) {
  const Four inverse = 1.0f / d;
  Four loss{};
  for (int j = 0; j < kActElems; ++j) {
    const Four lost = x[j] - d * whole(x[j] * inverse, s);
    loss += lost * lost;
  }
  return loss;
}

}  // namespace closest_scale

/// Writes the scale of 32 numbers to `scale`, as an f16, and the integers to w. If any number is not finite, the scale
/// is NaN. The earlier of two scales with equal loss wins. Returns 1 if the scale saturated, else 0.
inline int64_t encode_closest(const float* x, const ScaleSearch& s, std::byte* scale, int* w) {
  using namespace closest_scale;
  const float extreme = range_of(x, kActElems).extreme();
  std::array<float, kScales> wanted, stored, loss;
  std::array<std::byte, 2 * kScales> halves;
  for (size_t t = 0; t < kScales; ++t) wanted[t] = extreme / (s.step * static_cast<float>(t) - s.first);
  codec_f16().encode(wanted.data(), halves.data(), kScales);
  codec_f16().decode(halves.data(), stored.data(), kScales);
  for (size_t t = 0; t < kScales; t += 4) {
    const Four four = squared_loss(x, four_at(&stored[t]), s);
    std::memcpy(&loss[t], &four, sizeof four);
  }
  const auto best = static_cast<size_t>(std::min_element(loss.begin(), loss.end()) - loss.begin());
  const float d = stored[best], inverse = 1.0f / d;
  const bool shown_by_scale = !(std::fabs(d) > 0);  // all zeros, or not finite
  for (int j = 0; j < kActElems; j += 4) {
    const Four steps = whole(four_at(x + j) * inverse, s);
    for (int i = 0; i < 4; ++i) w[j + i] = shown_by_scale ? 0 : static_cast<int>(steps[i]);
  }
  return put_half(wanted[best], scale);
}

}  // namespace kvasir
