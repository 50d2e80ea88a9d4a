// 16 int32 lanes in one register, and sums of products of bytes (AVX-512 VNNI). Same API as int16_avx2.h.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "math/vec16_avx512.h"

namespace KVASIR_SIMD_NS {

struct I16 {
  __m512i v;
};

KVASIR_SIMD_FN I16 set1_i(int32_t x) { return {_mm512_set1_epi32(x)}; }
KVASIR_SIMD_FN I16 load_i(const int32_t* p) { return {_mm512_loadu_si512(p)}; }
KVASIR_SIMD_FN void store_i(int32_t* p, I16 x) { _mm512_storeu_si512(p, x.v); }
KVASIR_SIMD_FN I16 operator+(I16 a, I16 b) { return {_mm512_add_epi32(a.v, b.v)}; }
KVASIR_SIMD_FN I16 operator-(I16 a, I16 b) { return {_mm512_sub_epi32(a.v, b.v)}; }
KVASIR_SIMD_FN I16 operator*(I16 a, I16 b) { return {_mm512_mullo_epi32(a.v, b.v)}; }
KVASIR_SIMD_FN V16 to_float(I16 x) { return {_mm512_maskz_cvtepi32_ps(kAllLanes, x.v)}; }
/// 16 bytes widened.
KVASIR_SIMD_FN I16 widen_u8(const uint8_t* p) {
  return {_mm512_maskz_cvtepu8_epi32(kAllLanes, _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
KVASIR_SIMD_FN I16 widen_i8(const uint8_t* p) {
  return {_mm512_maskz_cvtepi8_epi32(kAllLanes, _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}

// Weights are unsigned here: signed ones get 128 added, which the caller takes off again.
static constexpr bool kSignedWeights = false;

/// 64 bytes: 4 of each of 16 rows.
struct B64 {
  __m512i v;
};
KVASIR_SIMD_FN B64 load_b64(const uint8_t* p) { return {_mm512_loadu_si512(p)}; }
/// acc[r] += the 4 products of row r's bytes with x[0..3].
template <bool kSigned>
KVASIR_SIMD_FN I16 dot4(I16 acc, B64 w, const int8_t* x) {
  int32_t four;
  std::memcpy(&four, x, sizeof four);
  return {_mm512_dpbusd_epi32(acc.v, w.v, _mm512_set1_epi32(four))};
}

KVASIR_SIMD_FN __m512i both_halves(__m256i x) {
  return _mm512_maskz_inserti64x4(0xff, _mm512_castsi256_si512(x), x, 1);
}
KVASIR_SIMD_FN __m512i two_rows(__m256i a, __m256i b) {
  return _mm512_maskz_inserti64x4(0xff, _mm512_castsi256_si512(a), b, 1);
}

/// lane r: the sum of the 32 products of row r with x.
template <bool kSigned>
KVASIR_SIMD_FN I16 row_sums(const __m256i* w, __m256i x) {
  const __m512i xx = both_halves(x), none = _mm512_setzero_si512();
  __m512i v[8];
  for (int half = 0; half < 2; ++half)
    for (int i = 0; i < 4; ++i)
      v[4 * half + i] = _mm512_dpbusd_epi32(none, two_rows(w[8 * half + i], w[8 * half + i + 4]), xx);
  __m512i u[2];
  for (int half = 0; half < 2; ++half) {
    const __m512i *a = v + 4 * half,
                  t0 = _mm512_add_epi32(_mm512_maskz_unpacklo_epi32(kAllLanes, a[0], a[1]),
                                        _mm512_maskz_unpackhi_epi32(kAllLanes, a[0], a[1])),
                  t1 = _mm512_add_epi32(_mm512_maskz_unpacklo_epi32(kAllLanes, a[2], a[3]),
                                        _mm512_maskz_unpackhi_epi32(kAllLanes, a[2], a[3]));
    u[half] = _mm512_add_epi32(_mm512_maskz_unpacklo_epi64(0xff, t0, t1), _mm512_maskz_unpackhi_epi64(0xff, t0, t1));
  }
  return {_mm512_add_epi32(_mm512_maskz_shuffle_i32x4(kAllLanes, u[0], u[1], 0x88),
                           _mm512_maskz_shuffle_i32x4(kAllLanes, u[0], u[1], 0xdd))};
}

}  // namespace KVASIR_SIMD_NS
