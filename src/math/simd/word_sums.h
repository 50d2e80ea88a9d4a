// Sums of products of a part of integer weights, for CPUs that sum them as words at once: kernels_integer_simd.h asks
// for them in this form, which others answer with half words (int16_avx2.h). Included behind I16 and dot4.
#pragma once

#include <cstdint>

#include "math/simd/vec16_common.h"

namespace KVASIR_SIMD_NS {

/// Sums of products of weights of kBits bits with kFit<kBits> times four activations, before they are words.
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
