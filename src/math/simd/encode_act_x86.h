// The target-specific parts of encode_act (kernels_integer_simd.h) in AVX2, which both x86 tables have.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "dtype/operands.h"

namespace KVASIR_SIMD_NS {
namespace {

using kvasir::ActBlock;

inline int32_t sum_of_bytes(__m128i x) {
  const __m128i pairs = _mm_maddubs_epi16(_mm_set1_epi8(1), x), fours = _mm_madd_epi16(pairs, _mm_set1_epi16(1));
  const __m128i two = _mm_add_epi32(fours, _mm_shuffle_epi32(fours, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 0xb1)));
}

// The largest magnitude of 32 values, as bits.
inline uint32_t largest_magnitude(const float* x) {
  const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
  __m256i most = _mm256_setzero_si256();
  KVASIR_UNROLL
  for (int i = 0; i < 4; ++i)
    most = _mm256_max_epu32(most, _mm256_and_si256(_mm256_castps_si256(_mm256_loadu_ps(x + 8 * i)), magnitude));
  __m128i m = _mm_max_epu32(_mm256_castsi256_si128(most), _mm256_extracti128_si256(most, 1));
  m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0x4e));
  m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0xb1));
  return static_cast<uint32_t>(_mm_cvtsi128_si32(m));
}

// Computes q and its sums from x and d.
inline void round_act(const float* x, ActBlock* out) {
  __m256i q[4];
  KVASIR_UNROLL
  for (int i = 0; i < 4; ++i) {
    const __m256i steps = _mm256_cvtps_epi32(_mm256_div_ps(_mm256_loadu_ps(x + 8 * i), _mm256_set1_ps(out->d)));
    q[i] = _mm256_max_epi32(_mm256_min_epi32(steps, _mm256_set1_epi32(127)), _mm256_set1_epi32(-127));
  }
  const __m256i bytes =
      _mm256_permutevar8x32_epi32(_mm256_packs_epi16(_mm256_packs_epi32(q[0], q[1]), _mm256_packs_epi32(q[2], q[3])),
                                  _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out->q), bytes);
  out->first = sum_of_bytes(_mm256_castsi256_si128(bytes));
  out->sum = out->first + sum_of_bytes(_mm256_extracti128_si256(bytes, 1));
}

}  // namespace
}  // namespace KVASIR_SIMD_NS
