// 16 int32 lanes in two registers, and sums of byte products (AVX2, with or without AVX-VNNI). Same API as
// int16_avx512.h.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "math/simd/bytes32_x86.h"
#include "math/simd/vec16_avx2.h"

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
KVASIR_SIMD_FN I16 operator&(I16 a, I16 b) { return {_mm256_and_si256(a.lo, b.lo), _mm256_and_si256(a.hi, b.hi)}; }
KVASIR_SIMD_FN I16 operator|(I16 a, I16 b) { return {_mm256_or_si256(a.lo, b.lo), _mm256_or_si256(a.hi, b.hi)}; }
KVASIR_SIMD_FN I16 shift_left(I16 x, int n) { return {_mm256_slli_epi32(x.lo, n), _mm256_slli_epi32(x.hi, n)}; }
KVASIR_SIMD_FN I16 shift_right(I16 x, int n) { return {_mm256_srli_epi32(x.lo, n), _mm256_srli_epi32(x.hi, n)}; }
KVASIR_SIMD_FN I16 shift_right_signed(I16 x, int n) { return {_mm256_srai_epi32(x.lo, n), _mm256_srai_epi32(x.hi, n)}; }
KVASIR_SIMD_FN V16 to_float(I16 x) { return {_mm256_cvtepi32_ps(x.lo), _mm256_cvtepi32_ps(x.hi)}; }

/// The f16 at byte `at` of each of 16 rows.
KVASIR_SIMD_FN V16 halves(const Blocks& blocks, int at) {
  return {_mm256_cvtph_ps(eight_halves(blocks, 0, at)), _mm256_cvtph_ps(eight_halves(blocks, 8, at))};
}

#ifdef __AVXVNNI__
// Weights are unsigned here: 128 is added to signed ones, and the caller subtracts its share again.
static constexpr bool kSignedWeights = false;
template <bool kSigned>
KVASIR_SIMD_FN __m256i add_quads(__m256i acc, __m256i w, __m256i x) {
  return _mm256_dpbusd_avx_epi32(acc, w, x);
}
#else
// Signed weights stay signed: with 128 added, a sum of two products would overflow 16 bits.
static constexpr bool kSignedWeights = true;
// Adds 8 sums of 4 products each to acc. |w| <= 128 and |x| <= 127, so two products fit 16 bits.
template <bool kSigned>
KVASIR_SIMD_FN __m256i add_quads(__m256i acc, __m256i w, __m256i x) {
  const __m256i pairs =
      kSigned ? _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w)) : _mm256_maddubs_epi16(w, x);
  return _mm256_add_epi32(acc, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
#endif

/// 64 bytes: 4 of each of 16 rows.
struct B64 {
  __m256i lo, hi;
};
KVASIR_SIMD_FN B64 load_b64(const uint8_t* p) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)),
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32))};
}
/// Adds to acc[r] the 4 products of row r's bytes with x[0..3].
template <bool kSigned>
KVASIR_SIMD_FN I16 dot4(I16 acc, B64 w, const int8_t* x) {
  int32_t four;
  std::memcpy(&four, x, sizeof four);
  const __m256i xx = _mm256_set1_epi32(four);
  return {add_quads<kSigned>(acc.lo, w.lo, xx), add_quads<kSigned>(acc.hi, w.hi, xx)};
}

// Transposes the words of four rows: t[g] has word g of the four in its lower half, word g + 4 in its upper half.
KVASIR_SIMD_FN void four_rows(const B32* w, __m256i* t) {
  const __m256i lo0 = _mm256_unpacklo_epi32(w[0].v, w[1].v), hi0 = _mm256_unpackhi_epi32(w[0].v, w[1].v),
                lo1 = _mm256_unpacklo_epi32(w[2].v, w[3].v), hi1 = _mm256_unpackhi_epi32(w[2].v, w[3].v);
  t[0] = _mm256_unpacklo_epi64(lo0, lo1);
  t[1] = _mm256_unpackhi_epi64(lo0, lo1);
  t[2] = _mm256_unpacklo_epi64(hi0, hi1);
  t[3] = _mm256_unpackhi_epi64(hi0, hi1);
}
/// Writes bytes 4g..4g+3 of row r to out[64 g + 4 r].
KVASIR_SIMD_FN void interleave(const B32* w, uint8_t* out) {
  for (int half = 0; half < 2; ++half) {
    __m256i first[4], last[4];
    four_rows(w + 8 * half, first);
    four_rows(w + 8 * half + 4, last);
    for (int g = 0; g < 4; ++g) {
      auto* to = reinterpret_cast<__m256i*>(out + 64 * g + 32 * half);
      _mm256_storeu_si256(to, _mm256_permute2x128_si256(first[g], last[g], 0x20));
      _mm256_storeu_si256(to + 8, _mm256_permute2x128_si256(first[g], last[g], 0x31));
    }
  }
}

}  // namespace KVASIR_SIMD_NS

#ifdef __AVXVNNI__
#include "math/simd/word_sums.h"
#else
namespace KVASIR_SIMD_NS {

/// Running sums of products of weights of kBits bits with up to 4 * kFit<kBits> activations, in 16 bits until they are
/// widened to words. Two products of |x| <= 127 fit 16 bits; with smaller weights, more do.
template <int kBits>
struct Sums {
  __m256i lo, hi;
};
template <int kBits>
static constexpr int kFit = kBits <= 4   ? 8
                            : kBits == 5 ? 4
                            : kBits <= 7 ? 2
                                         : 1;
template <int kBits>
KVASIR_SIMD_FN Sums<kBits> begin_sums(I16 words) {
  if constexpr (kBits == 8) return {words.lo, words.hi};
  return {_mm256_setzero_si256(), _mm256_setzero_si256()};
}
template <int kBits>
KVASIR_SIMD_FN Sums<kBits> add_four(Sums<kBits> sums, B64 w, const int8_t* x) {
  int32_t four;
  std::memcpy(&four, x, sizeof four);
  const __m256i xx = _mm256_set1_epi32(four);
  if constexpr (kBits == 8) return {add_quads<true>(sums.lo, w.lo, xx), add_quads<true>(sums.hi, w.hi, xx)};
  return {_mm256_add_epi16(sums.lo, _mm256_maddubs_epi16(w.lo, xx)),
          _mm256_add_epi16(sums.hi, _mm256_maddubs_epi16(w.hi, xx))};
}
template <int kBits>
KVASIR_SIMD_FN I16 end_sums(I16 words, Sums<kBits> sums) {
  if constexpr (kBits == 8) return {sums.lo, sums.hi};
  const __m256i ones = _mm256_set1_epi16(1);
  return words + I16{_mm256_madd_epi16(sums.lo, ones), _mm256_madd_epi16(sums.hi, ones)};
}

}  // namespace KVASIR_SIMD_NS
#endif
