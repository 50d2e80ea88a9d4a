// Shared by the types with integer weights: a row is blocks of 32 integers w with a scale and an offset each, and an
// element is scale * w + offset. A type only reads its stored block; decoding and the product are here.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "dtype/codec.h"
#include "dtype/operands.h"

namespace kvasir {

/// 32 elements of a row: scale * w + offset * offsets[0] in the first half, offset * offsets[1] in the second.
struct IntegerBlock {
  int32_t w[kActElems];
  float scale;
  float offset = 0;
  int32_t offsets[2] = {1, 1};
};

/// The 16-bit float at `bytes`, widened.
inline float half_at(const std::byte* bytes) {
  float value;
  codec_f16().decode(bytes, &value, 1);
  return value;
}
/// Writes the value as an f16. Returns 1 if it saturated, else 0.
inline int64_t put_half(float value, std::byte* bytes) { return codec_f16().encode(&value, bytes, 1); }

/// Smallest and largest of n values. Both are NaN if a value is not finite, so that the block shows it.
struct Range {
  float low, high;
  /// The value further from 0, with its sign; if both are equally far, the positive one.
  float extreme() const { return -low > high ? low : high; }
};
inline Range range_of(const float* x, int n) {
  Range range{x[0], x[0]};
  for (int i = 0; i < n; ++i) {
    if (!std::isfinite(x[i])) return {NAN, NAN};
    range.low = std::min(range.low, x[i]);
    range.high = std::max(range.high, x[i]);
  }
  return range;
}

/// x / d rounded to the nearest integer and clamped to [low, high]. Counts as 0 if d is 0 or the quotient is not
/// finite.
inline int steps(float x, float d, int low, int high) {
  if (!(d != 0) || !std::isfinite(x / d)) return std::clamp(0, low, high);
  return static_cast<int>(std::clamp(std::nearbyint(x / d), static_cast<float>(low), static_cast<float>(high)));
}

/// Rows of a type whose stored block has kElems elements in kBytes bytes. kRead(block, part) returns elements 32 part
/// .. 32 part + 31; kOffsets: the type has offsets.
template <int kElems, int kBytes, bool kOffsets, IntegerBlock (*kRead)(const std::byte* block, int part)>
struct IntegerRowOps {
  static IntegerBlock at(const std::byte* row, int64_t i) {
    return kRead(row + i / kElems * kBytes, static_cast<int>(i % kElems) / kActElems);
  }
  static void decode(const std::byte* src, float* dst, int64_t n) {
    for (int64_t i = 0; i < n; i += kActElems) {
      const IntegerBlock block = at(src, i);
      // The product is exact in every type, so the fma rounds only once.
      const int count = static_cast<int>(std::min<int64_t>(kActElems, n - i));
      for (int j = 0; j < count; ++j) {
        const float offset = block.offset * static_cast<float>(block.offsets[j / (kActElems / 2)]);
        dst[i + j] = std::fma(block.scale, static_cast<float>(block.w[j]), offset);
      }
    }
  }
  /// Blocks in ascending order; in each, first the product, then the offset's share.
  static float dot(const std::byte* row, const std::byte* act, int64_t n) {
    float acc = 0;
    for (int64_t i = 0; i < n; i += kActElems) {
      const IntegerBlock block = at(row, i);
      ActBlock x;
      std::memcpy(&x, act + static_cast<size_t>(i / kActElems) * sizeof x, sizeof x);
      int32_t sum = 0;
      for (int j = 0; j < kActElems; ++j) sum += block.w[j] * x.q[j];
      acc = std::fma(static_cast<float>(sum), block.scale * x.d, acc);
      if (!kOffsets) continue;
      const int32_t offsets = block.offsets[0] * x.first + block.offsets[1] * (x.sum - x.first);
      acc = std::fma(static_cast<float>(offsets), block.offset * x.d, acc);
    }
    return acc;
  }
};

}  // namespace kvasir
