// Running sums of products of integer weights, as 32-bit words, for CPUs that add four products to a word in one
// instruction; other targets keep 16-bit sums (int16_avx2.h). kernels_integer_simd.h uses this API. Included after I16
// and dot4.
#pragma once

#include <cstdint>

#include "math/simd/vec16_common.h"

namespace KVASIR_SIMD_NS {

/// Running sums of products of weights of kBits bits with up to 4 * kFit<kBits> activations.
template <int kBits>
struct Sums {
  I16 v;
};
template <int kBits>
static constexpr int kFit = 8;
template <int kBits>
KVASIR_SIMD_FN Sums<kBits> begin_sums(I16 words) {
  return {words};
}
template <int kBits>
KVASIR_SIMD_FN Sums<kBits> add_four(Sums<kBits> sums, B64 w, const int8_t* x) {
  return {dot4 < kBits == 8 && kSignedWeights > (sums.v, w, x)};
}
template <int kBits>
KVASIR_SIMD_FN I16 end_sums(I16, Sums<kBits> sums) {
  return sums.v;
}

}  // namespace KVASIR_SIMD_NS
