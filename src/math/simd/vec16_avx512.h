// 16 float lanes in one 512-bit register (AVX-512 F, BW, DQ, VL, and F16C). Only the operations; the kernels are in
// kernels_*_simd.h. The including file defines KVASIR_SIMD_NS, the namespace of everything here. Same API as the other
// vec16_*.h.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "math/simd/vec16_common.h"

#ifndef KVASIR_SIMD_NS
#error "define KVASIR_SIMD_NS, for example kvasir::avx512, before including math/vec16_avx512.h"
#endif

namespace KVASIR_SIMD_NS {

/// Number of V16 that fit the registers.
static constexpr int kVectors = 32;

struct V16 {
  __m512 v;
  static KVASIR_SIMD_MEMBER V16 broadcast(float x) { return {_mm512_set1_ps(x)}; }
};

/// A lane mask: bit i is lane i.
struct M16 {
  __mmask16 m;
};

KVASIR_SIMD_FN V16 set1(float x) { return V16::broadcast(x); }
KVASIR_SIMD_FN V16 zero() { return {_mm512_setzero_ps()}; }
KVASIR_SIMD_FN V16 iota() { return {_mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)}; }

KVASIR_SIMD_FN __mmask16 first_lanes(int n) { return static_cast<__mmask16>((1u << n) - 1u); }
// Every lane. The zero-masked forms of some intrinsics stand in for the plain ones, whose undefined pass-through
// operand makes g++ 12 warn; with this mask they compile to the same instruction.
static constexpr __mmask16 kAllLanes = 0xffff;

KVASIR_SIMD_FN V16 load(const float* p) { return {_mm512_loadu_ps(p)}; }
/// Reads the first n (0..16) lanes and no element past n; the others are +0.
KVASIR_SIMD_FN V16 load_n(const float* p, int n) { return {_mm512_maskz_loadu_ps(first_lanes(n), p)}; }
KVASIR_SIMD_FN void store(float* p, V16 x) { _mm512_storeu_ps(p, x.v); }
/// Writes only the first n (0..16) lanes.
KVASIR_SIMD_FN void store_n(float* p, V16 x, int n) { _mm512_mask_storeu_ps(p, first_lanes(n), x.v); }

KVASIR_SIMD_FN V16 operator+(V16 a, V16 b) { return {_mm512_add_ps(a.v, b.v)}; }
KVASIR_SIMD_FN V16 operator-(V16 a, V16 b) { return {_mm512_sub_ps(a.v, b.v)}; }
KVASIR_SIMD_FN V16 operator*(V16 a, V16 b) { return {_mm512_mul_ps(a.v, b.v)}; }
KVASIR_SIMD_FN V16 operator/(V16 a, V16 b) { return {_mm512_div_ps(a.v, b.v)}; }
KVASIR_SIMD_FN V16 sqrt(V16 x) { return {_mm512_maskz_sqrt_ps(kAllLanes, x.v)}; }

/// The lanes of one register: lanes kRegLanes * i and on are register i of a V16.
using Reg = V16;
static constexpr int kRegs = 1, kRegLanes = 16;
KVASIR_SIMD_FN Reg zero_reg() { return zero(); }
KVASIR_SIMD_FN Reg load_reg(const float* p) { return load(p); }
/// The V16 made of the registers regs[0], regs[stride], ...
KVASIR_SIMD_FN V16 join(const Reg* regs, int) { return regs[0]; }

/// a * b + c, rounded once.
KVASIR_SIMD_FN V16 fma(V16 a, V16 b, V16 c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
/// fma in the first n lanes; the others keep the bits of c.
KVASIR_SIMD_FN V16 fma_n(V16 a, V16 b, V16 c, int n) { return {_mm512_mask3_fmadd_ps(a.v, b.v, c.v, first_lanes(n))}; }

KVASIR_SIMD_FN M16 lt(V16 a, V16 b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)}; }
KVASIR_SIMD_FN M16 gt(V16 a, V16 b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_GT_OQ)}; }
/// Lane i is bit i of low16.
KVASIR_SIMD_FN M16 mask_bits(uint32_t low16) { return {static_cast<__mmask16>(low16)}; }
KVASIR_SIMD_FN V16 select(M16 m, V16 if_true, V16 if_false) {
  return {_mm512_mask_blend_ps(m.m, if_false.v, if_true.v)};
}

KVASIR_SIMD_FN V16 abs(V16 x) {
  return {_mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(x.v), _mm512_set1_epi32(0x7fffffff)))};
}
KVASIR_SIMD_FN V16 negate(V16 x) {
  return {_mm512_castsi512_ps(_mm512_xor_si512(_mm512_castps_si512(x.v), _mm512_set1_epi32(INT32_MIN)))};
}
KVASIR_SIMD_FN V16 copysign(V16 magnitude, V16 sign_of) {
  const __m512i rest = _mm512_set1_epi32(0x7fffffff);
  const __m512i m = _mm512_castps_si512(magnitude.v), s = _mm512_castps_si512(sign_of.v);
  // 0xCA: the bit of m if `rest` is set, else the bit of s
  return {_mm512_castsi512_ps(_mm512_ternarylogic_epi32(rest, m, s, 0xCA))};
}
/// select(gt(a, b), a, b): b if either is NaN or both are zeros, as the instruction does.
KVASIR_SIMD_FN V16 max(V16 a, V16 b) { return {_mm512_maskz_max_ps(kAllLanes, a.v, b.v)}; }

/// 2^n for integer-valued n in [-126, 127].
KVASIR_SIMD_FN V16 pow2(V16 n) {
  const __m512i biased = _mm512_add_epi32(_mm512_maskz_cvtps_epi32(kAllLanes, n.v), _mm512_set1_epi32(127));
  return {_mm512_castsi512_ps(_mm512_maskz_slli_epi32(kAllLanes, biased, 23))};
}

KVASIR_SIMD_FN V16 widen_f16(__m256i h) { return {_mm512_maskz_cvtph_ps(kAllLanes, h)}; }
KVASIR_SIMD_FN V16 widen_bf16(__m256i h) {
  const __m512i words = _mm512_maskz_cvtepu16_epi32(kAllLanes, h);
  return {_mm512_castsi512_ps(_mm512_maskz_slli_epi32(kAllLanes, words, 16))};
}
KVASIR_SIMD_FN V16 load_f16(const void* p) { return widen_f16(_mm256_loadu_si256(static_cast<const __m256i*>(p))); }
KVASIR_SIMD_FN V16 load_bf16(const void* p) { return widen_bf16(_mm256_loadu_si256(static_cast<const __m256i*>(p))); }
KVASIR_SIMD_FN V16 load_f16_n(const void* p, int n) { return widen_f16(_mm256_maskz_loadu_epi16(first_lanes(n), p)); }
KVASIR_SIMD_FN V16 load_bf16_n(const void* p, int n) { return widen_bf16(_mm256_maskz_loadu_epi16(first_lanes(n), p)); }

KVASIR_SIMD_FN Reg load_reg_f16(const void* p) { return load_f16(p); }
KVASIR_SIMD_FN Reg load_reg_bf16(const void* p) { return load_bf16(p); }

// The f16 at the start of a block of integers, in every lane; reads 8 bytes.
KVASIR_SIMD_FN V16 block_scale(const void* block) {
  const __m128 four = _mm_cvtph_ps(_mm_loadl_epi64(static_cast<const __m128i*>(block)));
  return {_mm512_maskz_broadcastss_ps(kAllLanes, four)};
}
/// Decodes a stored block of q8_0 (34 bytes) or q4_0 (18 bytes) to 32 floats, out[0] and out[1]. scale * w is exact;
/// the fma gives a zero the same sign as the codec.
KVASIR_SIMD_FN void load_q8_0(const void* block, V16* out) {
  const V16 scale = block_scale(block);
  const auto* bytes = reinterpret_cast<const __m128i*>(static_cast<const char*>(block) + 2);
  for (int i = 0; i < 2; ++i) {
    const __m512i w = _mm512_maskz_cvtepi8_epi32(kAllLanes, _mm_loadu_si128(bytes + i));
    out[i] = fma(scale, {_mm512_maskz_cvtepi32_ps(kAllLanes, w)}, zero());
  }
}
KVASIR_SIMD_FN void load_q4_0(const void* block, V16* out) {
  const V16 table = fma(block_scale(block), iota() - set1(8), zero());
  const auto* bytes = reinterpret_cast<const __m128i*>(static_cast<const char*>(block) + 2);
  const __m512i w = _mm512_maskz_cvtepu8_epi32(kAllLanes, _mm_loadu_si128(bytes));
  out[0] = {_mm512_maskz_permutexvar_ps(kAllLanes, w, table.v)};  // uses the low four bits of each index
  out[1] = {_mm512_maskz_permutexvar_ps(kAllLanes, _mm512_maskz_srli_epi32(kAllLanes, w, 4), table.v)};
}

/// Adds lane i+8 to lane i, then i+4, i+2, i+1. Returns lane 0.
KVASIR_SIMD_FN float fold(V16 x) {
  const __m512d all = _mm512_castps_pd(x.v);
  const __m256 lower = _mm256_castpd_ps(_mm512_maskz_extractf64x4_pd(0xff, all, 0));
  const __m256 upper = _mm256_castpd_ps(_mm512_maskz_extractf64x4_pd(0xff, all, 1));
  const __m256 eight = _mm256_add_ps(lower, upper);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

// Quarters of a and b: [a0+a2, a1+a3, b0+b2, b1+b3].
KVASIR_SIMD_FN __m512 add_halves(V16 a, V16 b) {
  return _mm512_add_ps(_mm512_maskz_shuffle_f32x4(kAllLanes, a.v, b.v, 0x44),
                       _mm512_maskz_shuffle_f32x4(kAllLanes, a.v, b.v, 0xEE));
}
/// Lane i is fold(v[i]), with the same bits, for v[0..15]: adds halves while it transposes the sixteen vectors.
KVASIR_SIMD_FN V16 fold16(const V16* v) {
  __m512 four[4], two[2];  // four[k]: quarter g holds the 4 remaining lanes of v[4 g + k]
  for (int k = 0; k < 4; ++k) {
    const __m512 a = add_halves(v[k], v[k + 4]), b = add_halves(v[k + 8], v[k + 12]);
    four[k] = _mm512_add_ps(_mm512_maskz_shuffle_f32x4(kAllLanes, a, b, 0x88),
                            _mm512_maskz_shuffle_f32x4(kAllLanes, a, b, 0xDD));
  }
  for (int k = 0; k < 2; ++k) {
    const __m512 a = four[2 * k], b = four[2 * k + 1];
    two[k] =
        _mm512_add_ps(_mm512_maskz_shuffle_ps(kAllLanes, a, b, 0x44), _mm512_maskz_shuffle_ps(kAllLanes, a, b, 0xEE));
  }
  return {_mm512_add_ps(_mm512_maskz_shuffle_ps(kAllLanes, two[0], two[1], 0x88),
                        _mm512_maskz_shuffle_ps(kAllLanes, two[0], two[1], 0xDD))};
}

/// The largest lane; unspecified if a lane is NaN.
KVASIR_SIMD_FN float largest_lane(V16 x) {
  const __m512d all = _mm512_castps_pd(x.v);
  const __m256 eight = _mm256_max_ps(_mm256_castpd_ps(_mm512_maskz_extractf64x4_pd(0xff, all, 0)),
                                     _mm256_castpd_ps(_mm512_maskz_extractf64x4_pd(0xff, all, 1)));
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

// Four of the columns of four rows: quarter g of out[c] is lane 4 g + c of each row.
KVASIR_SIMD_FN void transpose4(const V16* rows, __m512* out) {
  const __m512 a = _mm512_maskz_unpacklo_ps(kAllLanes, rows[0].v, rows[1].v),
               b = _mm512_maskz_unpackhi_ps(kAllLanes, rows[0].v, rows[1].v),
               c = _mm512_maskz_unpacklo_ps(kAllLanes, rows[2].v, rows[3].v),
               d = _mm512_maskz_unpackhi_ps(kAllLanes, rows[2].v, rows[3].v);
  out[0] = _mm512_maskz_shuffle_ps(kAllLanes, a, c, 0x44);
  out[1] = _mm512_maskz_shuffle_ps(kAllLanes, a, c, 0xEE);
  out[2] = _mm512_maskz_shuffle_ps(kAllLanes, b, d, 0x44);
  out[3] = _mm512_maskz_shuffle_ps(kAllLanes, b, d, 0xEE);
}
/// Lane r of columns[c] is lane c of rows[r], of 16.
KVASIR_SIMD_FN void transpose16(const V16* rows, V16* columns) {
  __m512 t[4][4];
  for (int i = 0; i < 4; ++i) transpose4(rows + 4 * i, t[i]);
  for (int c = 0; c < 4; ++c) {
    const __m512 a = _mm512_maskz_shuffle_f32x4(kAllLanes, t[0][c], t[1][c], 0x88),
                 b = _mm512_maskz_shuffle_f32x4(kAllLanes, t[0][c], t[1][c], 0xDD),
                 e = _mm512_maskz_shuffle_f32x4(kAllLanes, t[2][c], t[3][c], 0x88),
                 f = _mm512_maskz_shuffle_f32x4(kAllLanes, t[2][c], t[3][c], 0xDD);
    columns[c] = {_mm512_maskz_shuffle_f32x4(kAllLanes, a, e, 0x88)};
    columns[c + 4] = {_mm512_maskz_shuffle_f32x4(kAllLanes, b, f, 0x88)};
    columns[c + 8] = {_mm512_maskz_shuffle_f32x4(kAllLanes, a, e, 0xDD)};
    columns[c + 12] = {_mm512_maskz_shuffle_f32x4(kAllLanes, b, f, 0xDD)};
  }
}

KVASIR_SIMD_FN void prefetch(const void* p) { __builtin_prefetch(p); }
/// Prefetches into the level-2 cache, not level 1.
KVASIR_SIMD_FN void prefetch_far(const void* p) { __builtin_prefetch(p, 0, 2); }

}  // namespace KVASIR_SIMD_NS
