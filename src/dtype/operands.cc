// The scalar definition of encode_act. Every SIMD version gives the same bits (docs/numerics.md, "Integer weights").
#include "dtype/operands.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace kvasir {
namespace {

constexpr uint32_t kInfinityBits = 0x7f800000u;

// The bits of the largest magnitude. They order as the values do, and infinity and NaN are above all finite values.
uint32_t largest_bits(const float* x) {
  uint32_t largest = 0;
  for (int i = 0; i < kActElems; ++i) largest = std::max(largest, std::bit_cast<uint32_t>(x[i]) & 0x7fffffffu);
  return largest;
}

void encode_block(const float* x, ActBlock* out) {
  const uint32_t largest = largest_bits(x);
  const bool finite = largest < kInfinityBits;
  out->d = finite ? std::bit_cast<float>(largest) / 127.0f : std::numeric_limits<float>::quiet_NaN();
  out->sum = out->first = 0;
  for (int i = 0; i < kActElems; ++i) {
    int q = 0;
    if (finite && out->d != 0) q = static_cast<int>(std::clamp(std::nearbyint(x[i] / out->d), -127.0f, 127.0f));
    out->q[i] = static_cast<int8_t>(q);
    out->sum += q;
    if (i < kActElems / 2) out->first += q;
  }
}

}  // namespace

void encode_act(const float* x, ActBlock* out, int64_t n) {
  for (int64_t i = 0; i < n; i += kActElems) encode_block(x + i, out + i / kActElems);
}

}  // namespace kvasir
