// The order of every float sum: 16 lanes, element i in lane i mod 16, then a fold. Scalar code; the SIMD versions give
// the same bits.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace kvasir {

inline constexpr int kLanes = 16;

/// lane i += lane i+8, then +4, +2, +1; returns lane 0.
inline float fold_lanes(float* lanes) {
  for (int step = kLanes / 2; step > 0; step /= 2)
    for (int i = 0; i < step; ++i) lanes[i] += lanes[i + step];
  return lanes[0];
}

/// Element i of a row of floats; the row may be unaligned.
inline float float_at(const std::byte* row, int64_t i) {
  float x;
  std::memcpy(&x, row + static_cast<size_t>(i) * sizeof x, sizeof x);
  return x;
}

/// 16-lane dot product of n elements given by a(i) and b(i): fused multiply-add, i ascending, from +0.
template <class A, class B>
inline float dot_lanes(int64_t n, A a, B b) {
  float lanes[kLanes] = {};
  for (int64_t i = 0; i < n; ++i) lanes[i % kLanes] = std::fma(a(i), b(i), lanes[i % kLanes]);
  return fold_lanes(lanes);
}

}  // namespace kvasir
