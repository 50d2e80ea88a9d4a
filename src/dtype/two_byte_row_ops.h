// Rows of 16-bit floats, shared by f16 and bf16; each type defines how one value is widened and narrowed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "dtype/lanes.h"

namespace kvasir {

/// All bits set, or none. With masks instead of branches the compiler vectorises a loop over narrow().
using Mask = uint32_t;
constexpr Mask where(bool condition) { return 0u - static_cast<uint32_t>(condition); }
constexpr uint32_t choose(Mask mask, uint32_t yes, uint32_t no) { return (yes & mask) | (no & ~mask); }

/// kWiden is exact; kNarrow rounds and adds 1 to *saturated if the type cannot represent the value.
template <float (*kWiden)(uint16_t), uint16_t (*kNarrow)(float, uint32_t* saturated)>
struct TwoByteRowOps {
  static float at(const std::byte* row, int64_t i) {
    uint16_t h;
    std::memcpy(&h, row + static_cast<size_t>(i) * sizeof h, sizeof h);
    return kWiden(h);
  }
  static int64_t encode(const float* src, std::byte* dst, int64_t n) {
    constexpr int64_t kRun = int64_t{1} << 30;  // encode_run counts in 32 bits
    int64_t saturated = 0;
    for (int64_t i = 0; i < n; i += kRun) saturated += encode_run(src + i, dst + 2 * i, std::min(n - i, kRun));
    return saturated;
  }
  static uint32_t encode_run(const float* src, std::byte* dst, int64_t n) {
    uint32_t saturated = 0;
    for (int64_t i = 0; i < n; ++i) {
      const uint16_t h = kNarrow(src[i], &saturated);
      std::memcpy(dst + 2 * i, &h, sizeof h);
    }
    return saturated;
  }
  static void decode(const std::byte* src, float* dst, int64_t n) {
    for (int64_t i = 0; i < n; ++i) dst[i] = at(src, i);
  }
  static float dot(const std::byte* row, const std::byte* act, int64_t n) {
    return dot_lanes(
        n, [&](int64_t i) { return at(row, i); }, [&](int64_t i) { return float_at(act, i); });
  }
};

}  // namespace kvasir
