// 16 int32 lanes in two registers, and sums of products of bytes (AVX2). Same API as int16_avx512.h.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "math/vec16_avx2.h"

namespace KVASIR_SIMD_NS {

struct I16 {
  __m256i lo, hi;
};

KVASIR_SIMD_FN I16 set1_i(int32_t x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
KVASIR_SIMD_FN I16 load_i(const int32_t* p) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)),
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 8))};
}
KVASIR_SIMD_FN void store_i(int32_t* p, I16 x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), x.lo);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 8), x.hi);
}
KVASIR_SIMD_FN I16 operator+(I16 a, I16 b) { return {_mm256_add_epi32(a.lo, b.lo), _mm256_add_epi32(a.hi, b.hi)}; }
KVASIR_SIMD_FN I16 operator-(I16 a, I16 b) { return {_mm256_sub_epi32(a.lo, b.lo), _mm256_sub_epi32(a.hi, b.hi)}; }
KVASIR_SIMD_FN I16 operator*(I16 a, I16 b) { return {_mm256_mullo_epi32(a.lo, b.lo), _mm256_mullo_epi32(a.hi, b.hi)}; }
KVASIR_SIMD_FN V16 to_float(I16 x) { return {_mm256_cvtepi32_ps(x.lo), _mm256_cvtepi32_ps(x.hi)}; }
/// 16 bytes widened.
KVASIR_SIMD_FN I16 widen_u8(const uint8_t* p) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return {_mm256_cvtepu8_epi32(bytes), _mm256_cvtepu8_epi32(_mm_srli_si128(bytes, 8))};
}
KVASIR_SIMD_FN I16 widen_i8(const uint8_t* p) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return {_mm256_cvtepi8_epi32(bytes), _mm256_cvtepi8_epi32(_mm_srli_si128(bytes, 8))};
}

// Signed weights stay signed: with 128 added, two products would overflow the 16 bits that they are summed in.
static constexpr bool kSignedWeights = true;

/// 8 sums of 4 products each. |w| <= 128 and |x| <= 127, so two products fit 16 bits.
template <bool kSigned>
KVASIR_SIMD_FN __m256i quads(__m256i w, __m256i x) {
  const __m256i pairs =
      kSigned ? _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w)) : _mm256_maddubs_epi16(w, x);
  return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}

/// 64 bytes: 4 of each of 16 rows.
struct B64 {
  __m256i lo, hi;
};
KVASIR_SIMD_FN B64 load_b64(const uint8_t* p) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)),
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32))};
}
/// acc[r] += the 4 products of row r's bytes with x[0..3].
template <bool kSigned>
KVASIR_SIMD_FN I16 dot4(I16 acc, B64 w, const int8_t* x) {
  int32_t four;
  std::memcpy(&four, x, sizeof four);
  const __m256i xx = _mm256_set1_epi32(four);
  return {_mm256_add_epi32(acc.lo, quads<kSigned>(w.lo, xx)), _mm256_add_epi32(acc.hi, quads<kSigned>(w.hi, xx))};
}

template <bool kSigned>
KVASIR_SIMD_FN __m256i eight_row_sums(const __m256i* w, __m256i x) {
  __m256i v[4];
  for (int i = 0; i < 4; ++i) v[i] = _mm256_hadd_epi32(quads<kSigned>(w[2 * i], x), quads<kSigned>(w[2 * i + 1], x));
  const __m256i a = _mm256_hadd_epi32(v[0], v[1]), b = _mm256_hadd_epi32(v[2], v[3]);
  return _mm256_add_epi32(_mm256_permute2x128_si256(a, b, 0x20), _mm256_permute2x128_si256(a, b, 0x31));
}
/// lane r: the sum of the 32 products of row r with x.
template <bool kSigned>
KVASIR_SIMD_FN I16 row_sums(const __m256i* w, __m256i x) {
  return {eight_row_sums<kSigned>(w, x), eight_row_sums<kSigned>(w + 8, x)};
}

}  // namespace KVASIR_SIMD_NS
