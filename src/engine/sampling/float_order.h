// Floats as integers with the same order, for comparisons that vectorise and for bisection over all floats.
#pragma once

#include <bit>
#include <cstdint>

namespace kvasir {

/// Ascends with the floats. -0 is below 0; NaNs lie beyond the infinities at both ends.
inline int32_t order_of(float x) {
  const int32_t bits = std::bit_cast<int32_t>(x);
  return bits ^ ((bits >> 31) & 0x7fffffff);
}
inline float at_order(int32_t order) { return std::bit_cast<float>(order ^ ((order >> 31) & 0x7fffffff)); }

}  // namespace kvasir
