// 16 int32 lanes in one register, and sums of byte products (AVX-512, with or without VNNI). Same API as int16_avx2.h.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "math/simd/bytes32_x86.h"
#include "math/simd/vec16_avx512.h"

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
KVASIR_SIMD_FN I16 operator&(I16 a, I16 b) { return {_mm512_and_si512(a.v, b.v)}; }
KVASIR_SIMD_FN I16 operator|(I16 a, I16 b) { return {_mm512_or_si512(a.v, b.v)}; }
KVASIR_SIMD_FN I16 shift_left(I16 x, int n) {
  return {_mm512_maskz_slli_epi32(kAllLanes, x.v, static_cast<unsigned>(n))};
}
KVASIR_SIMD_FN I16 shift_right(I16 x, int n) {
  return {_mm512_maskz_srli_epi32(kAllLanes, x.v, static_cast<unsigned>(n))};
}
KVASIR_SIMD_FN I16 shift_right_signed(I16 x, int n) {
  return {_mm512_maskz_srai_epi32(kAllLanes, x.v, static_cast<unsigned>(n))};
}
KVASIR_SIMD_FN V16 to_float(I16 x) { return {_mm512_maskz_cvtepi32_ps(kAllLanes, x.v)}; }

/// The f16 at byte `at` of each of 16 rows.
KVASIR_SIMD_FN V16 halves(const Blocks& blocks, int at) {
  return widen_f16(_mm256_set_m128i(eight_halves(blocks, 8, at), eight_halves(blocks, 0, at)));
}

#ifdef __AVX512VNNI__
// Weights are unsigned here: 128 is added to signed ones, and the caller subtracts its share again.
static constexpr bool kSignedWeights = false;
template <bool kSigned>
KVASIR_SIMD_FN __m512i add_quads(__m512i acc, __m512i w, __m512i x) {
  return _mm512_dpbusd_epi32(acc, w, x);
}
#else
// Signed weights stay signed: with 128 added, a sum of two products would overflow 16 bits.
static constexpr bool kSignedWeights = true;
// Adds 16 sums of 4 products each to acc. |w| <= 128 and |x| <= 127, so two products fit 16 bits.
template <bool kSigned>
KVASIR_SIMD_FN __m512i add_quads(__m512i acc, __m512i w, __m512i x) {
  const __m512i pairs =
      kSigned ? _mm512_maddubs_epi16(_mm512_maskz_abs_epi8(~__mmask64{0}, w),
                                     _mm512_mask_sub_epi8(x, _mm512_movepi8_mask(w), _mm512_setzero_si512(), x))
              : _mm512_maddubs_epi16(w, x);
  return _mm512_add_epi32(acc, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
}
#endif

/// 64 bytes: 4 of each of 16 rows.
struct B64 {
  __m512i v;
};
KVASIR_SIMD_FN B64 load_b64(const uint8_t* p) { return {_mm512_loadu_si512(p)}; }
/// Adds to acc[r] the 4 products of row r's bytes with x[0..3].
template <bool kSigned>
KVASIR_SIMD_FN I16 dot4(I16 acc, B64 w, const int8_t* x) {
  int32_t four;
  std::memcpy(&four, x, sizeof four);
  return {add_quads<kSigned>(acc.v, w.v, _mm512_set1_epi32(four))};
}

KVASIR_SIMD_FN __m512i two_rows(B32 a, B32 b) {
  return _mm512_maskz_inserti64x4(0xff, _mm512_castsi256_si512(a.v), b.v, 1);
}

/// Writes bytes 4g..4g+3 of row r to out[64 g + 4 r].
KVASIR_SIMD_FN void interleave(const B32* w, uint8_t* out) {
  __m512i t[2][4];  // [rows 0-7 or 8-15][g]: words g and g + 4 of the first four rows, then of the other four
  for (int half = 0; half < 2; ++half) {
    __m512i a[4];
    for (int i = 0; i < 4; ++i) a[i] = two_rows(w[8 * half + i], w[8 * half + i + 4]);
    const __m512i lo0 = _mm512_maskz_unpacklo_epi32(kAllLanes, a[0], a[1]),
                  hi0 = _mm512_maskz_unpackhi_epi32(kAllLanes, a[0], a[1]),
                  lo1 = _mm512_maskz_unpacklo_epi32(kAllLanes, a[2], a[3]),
                  hi1 = _mm512_maskz_unpackhi_epi32(kAllLanes, a[2], a[3]);
    t[half][0] = _mm512_maskz_unpacklo_epi64(0xff, lo0, lo1);
    t[half][1] = _mm512_maskz_unpackhi_epi64(0xff, lo0, lo1);
    t[half][2] = _mm512_maskz_unpacklo_epi64(0xff, hi0, hi1);
    t[half][3] = _mm512_maskz_unpackhi_epi64(0xff, hi0, hi1);
  }
  for (int g = 0; g < 4; ++g) {
    _mm512_storeu_si512(out + 64 * g, _mm512_maskz_shuffle_i32x4(kAllLanes, t[0][g], t[1][g], 0x88));
    _mm512_storeu_si512(out + 64 * (g + 4), _mm512_maskz_shuffle_i32x4(kAllLanes, t[0][g], t[1][g], 0xdd));
  }
}

}  // namespace KVASIR_SIMD_NS

#ifdef __AVX512VNNI__
#include "math/simd/word_sums.h"
#else
namespace KVASIR_SIMD_NS {

/// Running sums of products of weights of kBits bits with up to 4 * kFit<kBits> activations, in 16 bits until they are
/// widened to words. Two products of |x| <= 127 fit 16 bits; with smaller weights, more do.
template <int kBits>
struct Sums {
  __m512i v;
};
template <int kBits>
static constexpr int kFit = kBits <= 4   ? 8
                            : kBits == 5 ? 4
                            : kBits <= 7 ? 2
                                         : 1;
template <int kBits>
KVASIR_SIMD_FN Sums<kBits> begin_sums(I16 words) {
  return {kBits == 8 ? words.v : _mm512_setzero_si512()};
}
template <int kBits>
KVASIR_SIMD_FN Sums<kBits> add_four(Sums<kBits> sums, B64 w, const int8_t* x) {
  if constexpr (kBits == 8) return {dot4<true>(I16{sums.v}, w, x).v};
  int32_t four;
  std::memcpy(&four, x, sizeof four);
  return {_mm512_add_epi16(sums.v, _mm512_maddubs_epi16(w.v, _mm512_set1_epi32(four)))};
}
template <int kBits>
KVASIR_SIMD_FN I16 end_sums(I16 words, Sums<kBits> sums) {
  if constexpr (kBits == 8) return {sums.v};
  return words + I16{_mm512_madd_epi16(sums.v, _mm512_set1_epi16(1))};
}

}  // namespace KVASIR_SIMD_NS
#endif
