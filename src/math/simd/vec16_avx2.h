// 16 float lanes in two 256-bit registers (AVX2, FMA, F16C). Only the operations; the kernels are in kernels_*_simd.h.
// The including file defines KVASIR_SIMD_NS, the namespace of everything here. Same API as the other vec16_*.h.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "math/simd/vec16_common.h"

#ifndef KVASIR_SIMD_NS
#error "define KVASIR_SIMD_NS, for example kvasir::avx2, before including math/vec16_avx2.h"
#endif

namespace KVASIR_SIMD_NS {

/// Number of V16 that fit the registers.
static constexpr int kVectors = 8;

struct V16 {
  __m256 lo, hi;
  static KVASIR_SIMD_MEMBER V16 broadcast(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
};

/// A lane mask: all ones or all zeros in each lane.
struct M16 {
  __m256 lo, hi;
};

KVASIR_SIMD_FN V16 set1(float x) { return V16::broadcast(x); }
KVASIR_SIMD_FN V16 zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
KVASIR_SIMD_FN V16 iota() {
  return {_mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7), _mm256_setr_ps(8, 9, 10, 11, 12, 13, 14, 15)};
}

// A window on 16 set and 16 clear words is the mask of the first n lanes.
alignas(64) static constexpr int32_t kFirstLanes[32] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};

struct FirstLanes {
  __m256i lo, hi;
};
KVASIR_SIMD_FN FirstLanes first_lanes(int n) {
  const int32_t* window = kFirstLanes + (16 - n);
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(window)),
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(window + 8))};
}

KVASIR_SIMD_FN V16 load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
/// Reads the first n (0..16) lanes and no element past n; the others are +0.
KVASIR_SIMD_FN V16 load_n(const float* p, int n) {
  const FirstLanes mask = first_lanes(n);
  return {_mm256_maskload_ps(p, mask.lo), _mm256_maskload_ps(p + 8, mask.hi)};
}
KVASIR_SIMD_FN void store(float* p, V16 x) {
  _mm256_storeu_ps(p, x.lo);
  _mm256_storeu_ps(p + 8, x.hi);
}
/// Writes only the first n (0..16) lanes.
KVASIR_SIMD_FN void store_n(float* p, V16 x, int n) {
  const FirstLanes mask = first_lanes(n);
  _mm256_maskstore_ps(p, mask.lo, x.lo);
  _mm256_maskstore_ps(p + 8, mask.hi, x.hi);
}

KVASIR_SIMD_FN V16 operator+(V16 a, V16 b) { return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)}; }
KVASIR_SIMD_FN V16 operator-(V16 a, V16 b) { return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)}; }
KVASIR_SIMD_FN V16 operator*(V16 a, V16 b) { return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)}; }
KVASIR_SIMD_FN V16 operator/(V16 a, V16 b) { return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)}; }
KVASIR_SIMD_FN V16 sqrt(V16 x) { return {_mm256_sqrt_ps(x.lo), _mm256_sqrt_ps(x.hi)}; }

/// The lanes of one register: lanes kRegLanes * i and on are register i of a V16.
struct Reg {
  __m256 v;
};
static constexpr int kRegs = 2, kRegLanes = 8;
KVASIR_SIMD_FN Reg zero_reg() { return {_mm256_setzero_ps()}; }
KVASIR_SIMD_FN Reg load_reg(const float* p) { return {_mm256_loadu_ps(p)}; }
KVASIR_SIMD_FN Reg fma(Reg a, Reg b, Reg c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }
/// The V16 made of the registers regs[0], regs[stride], ...
KVASIR_SIMD_FN V16 join(const Reg* regs, int stride) { return {regs[0].v, regs[stride].v}; }

/// a * b + c, rounded once.
KVASIR_SIMD_FN V16 fma(V16 a, V16 b, V16 c) {
  return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
/// fma in the first n lanes; the others keep the bits of c.
KVASIR_SIMD_FN V16 fma_n(V16 a, V16 b, V16 c, int n) {
  const FirstLanes mask = first_lanes(n);
  const V16 sum = fma(a, b, c);
  return {_mm256_blendv_ps(c.lo, sum.lo, _mm256_castsi256_ps(mask.lo)),
          _mm256_blendv_ps(c.hi, sum.hi, _mm256_castsi256_ps(mask.hi))};
}

KVASIR_SIMD_FN M16 lt(V16 a, V16 b) {
  return {_mm256_cmp_ps(a.lo, b.lo, _CMP_LT_OQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_LT_OQ)};
}
KVASIR_SIMD_FN M16 gt(V16 a, V16 b) {
  return {_mm256_cmp_ps(a.lo, b.lo, _CMP_GT_OQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_GT_OQ)};
}
/// Lane i is bit i of low16.
KVASIR_SIMD_FN M16 mask_bits(uint32_t low16) {
  const __m256i bits = _mm256_set1_epi32(static_cast<int>(low16));
  const __m256i lo = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128), hi = _mm256_slli_epi32(lo, 8);
  return {_mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_and_si256(bits, lo), lo)),
          _mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_and_si256(bits, hi), hi))};
}
KVASIR_SIMD_FN V16 select(M16 m, V16 if_true, V16 if_false) {
  return {_mm256_blendv_ps(if_false.lo, if_true.lo, m.lo), _mm256_blendv_ps(if_false.hi, if_true.hi, m.hi)};
}

KVASIR_SIMD_FN V16 abs(V16 x) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  return {_mm256_andnot_ps(sign, x.lo), _mm256_andnot_ps(sign, x.hi)};
}
KVASIR_SIMD_FN V16 negate(V16 x) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  return {_mm256_xor_ps(sign, x.lo), _mm256_xor_ps(sign, x.hi)};
}
KVASIR_SIMD_FN V16 copysign(V16 magnitude, V16 sign_of) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  return {_mm256_or_ps(_mm256_andnot_ps(sign, magnitude.lo), _mm256_and_ps(sign, sign_of.lo)),
          _mm256_or_ps(_mm256_andnot_ps(sign, magnitude.hi), _mm256_and_ps(sign, sign_of.hi))};
}
/// select(gt(a, b), a, b): b if either is NaN or both are zeros, as the instruction does.
KVASIR_SIMD_FN V16 max(V16 a, V16 b) { return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)}; }

/// 2^n for integer-valued n in [-126, 127].
KVASIR_SIMD_FN V16 pow2(V16 n) {
  const __m256i bias = _mm256_set1_epi32(127);
  const __m256i lo = _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n.lo), bias), 23);
  const __m256i hi = _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n.hi), bias), 23);
  return {_mm256_castsi256_ps(lo), _mm256_castsi256_ps(hi)};
}

KVASIR_SIMD_FN V16 load_f16(const void* p) {
  const __m128i* q = static_cast<const __m128i*>(p);
  return {_mm256_cvtph_ps(_mm_loadu_si128(q)), _mm256_cvtph_ps(_mm_loadu_si128(q + 1))};
}
KVASIR_SIMD_FN V16 load_bf16(const void* p) {
  const __m128i* q = static_cast<const __m128i*>(p);
  const __m256i lo = _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(q)), 16);
  const __m256i hi = _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(q + 1)), 16);
  return {_mm256_castsi256_ps(lo), _mm256_castsi256_ps(hi)};
}
// AVX2 has no masked load of 16-bit values, so the _n versions copy a tail to a buffer.
KVASIR_SIMD_FN Reg load_reg_f16(const void* p) {
  return {_mm256_cvtph_ps(_mm_loadu_si128(static_cast<const __m128i*>(p)))};
}
KVASIR_SIMD_FN Reg load_reg_bf16(const void* p) {
  const __m256i words = _mm256_cvtepu16_epi32(_mm_loadu_si128(static_cast<const __m128i*>(p)));
  return {_mm256_castsi256_ps(_mm256_slli_epi32(words, 16))};
}
KVASIR_SIMD_FN V16 load_f16_n(const void* p, int n) {
  alignas(32) uint16_t tail[16] = {};
  __builtin_memcpy(tail, p, static_cast<size_t>(n) * sizeof tail[0]);
  return load_f16(tail);
}
KVASIR_SIMD_FN V16 load_bf16_n(const void* p, int n) {
  alignas(32) uint16_t tail[16] = {};
  __builtin_memcpy(tail, p, static_cast<size_t>(n) * sizeof tail[0]);
  return load_bf16(tail);
}

// The f16 at the start of a block of integers, in every lane; reads 8 bytes.
KVASIR_SIMD_FN __m256 block_scale(const void* block) {
  return _mm256_broadcastss_ps(_mm_cvtph_ps(_mm_loadl_epi64(static_cast<const __m128i*>(block))));
}
// Bytes 8 i..8 i + 7 after the scale.
KVASIR_SIMD_FN __m256i block_bytes(const void* block, int i) {
  return _mm256_cvtepi8_epi32(
      _mm_loadl_epi64(reinterpret_cast<const __m128i*>(static_cast<const char*>(block) + 2 + 8 * i)));
}
KVASIR_SIMD_FN __m256 scaled(__m256 scale, __m256i w) {
  return _mm256_fmadd_ps(scale, _mm256_cvtepi32_ps(w), _mm256_setzero_ps());
}
/// Decodes a stored block of q8_0 (34 bytes) or q4_0 (18 bytes) to 32 floats, out[0] and out[1]. scale * w is exact;
/// the fma gives a zero the same sign as the codec.
KVASIR_SIMD_FN void load_q8_0(const void* block, V16* out) {
  const __m256 scale = block_scale(block);
  out[0] = {scaled(scale, block_bytes(block, 0)), scaled(scale, block_bytes(block, 1))};
  out[1] = {scaled(scale, block_bytes(block, 2)), scaled(scale, block_bytes(block, 3))};
}
// With 8 subtracted from both nibbles of a byte, the upper one is the byte shifted right. The lower one is used where a
// left shift puts it, 2^28 times too large, and the scale compensates.
KVASIR_SIMD_FN void load_q4_0(const void* block, V16* out) {
  const __m256 scale = block_scale(block), small = _mm256_mul_ps(scale, _mm256_set1_ps(0x1p-28f));
  const __m256i minus8 = _mm256_set1_epi32(~0x77);
  const __m256i lo = _mm256_xor_si256(block_bytes(block, 0), minus8);
  const __m256i hi = _mm256_xor_si256(block_bytes(block, 1), minus8);
  out[0] = {scaled(small, _mm256_slli_epi32(lo, 28)), scaled(small, _mm256_slli_epi32(hi, 28))};
  out[1] = {scaled(scale, _mm256_srai_epi32(lo, 4)), scaled(scale, _mm256_srai_epi32(hi, 4))};
}

/// Adds lane i+8 to lane i, then i+4, i+2, i+1. Returns lane 0.
KVASIR_SIMD_FN float fold(V16 x) {
  const __m256 eight = _mm256_add_ps(x.lo, x.hi);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

// Eight of the folds of fold16: adds halves while it transposes the eight vectors.
KVASIR_SIMD_FN __m256 fold8(const V16* v) {
  __m256 four[4], two[2];
  for (int i = 0; i < 4; ++i) {
    const __m256 a = _mm256_add_ps(v[i].lo, v[i].hi), b = _mm256_add_ps(v[i + 4].lo, v[i + 4].hi);
    four[i] = _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
  }
  for (int i = 0; i < 2; ++i) {
    const __m256 a = four[2 * i], b = four[2 * i + 1];
    two[i] = _mm256_add_ps(_mm256_shuffle_ps(a, b, 0x44), _mm256_shuffle_ps(a, b, 0xEE));
  }
  return _mm256_add_ps(_mm256_shuffle_ps(two[0], two[1], 0x88), _mm256_shuffle_ps(two[0], two[1], 0xDD));
}
/// Lane i is fold(v[i]), with the same bits, for v[0..15].
KVASIR_SIMD_FN V16 fold16(const V16* v) { return {fold8(v), fold8(v + 8)}; }

/// The largest lane; unspecified if a lane is NaN.
KVASIR_SIMD_FN float largest_lane(V16 x) {
  const __m256 eight = _mm256_max_ps(x.lo, x.hi);
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

// Four of the columns of four rows: half g of out[c] is lane 4 g + c of each row.
KVASIR_SIMD_FN void transpose4(const __m256* rows, __m256* out) {
  const __m256 a = _mm256_unpacklo_ps(rows[0], rows[1]), b = _mm256_unpackhi_ps(rows[0], rows[1]),
               c = _mm256_unpacklo_ps(rows[2], rows[3]), d = _mm256_unpackhi_ps(rows[2], rows[3]);
  out[0] = _mm256_shuffle_ps(a, c, 0x44);
  out[1] = _mm256_shuffle_ps(a, c, 0xEE);
  out[2] = _mm256_shuffle_ps(b, d, 0x44);
  out[3] = _mm256_shuffle_ps(b, d, 0xEE);
}
// Lane r of columns[c] is lane c of rows[r], of 8.
KVASIR_SIMD_FN void transpose8(const __m256* rows, __m256* columns) {
  __m256 first[4], last[4];
  transpose4(rows, first);
  transpose4(rows + 4, last);
  for (int c = 0; c < 4; ++c) {
    columns[c] = _mm256_permute2f128_ps(first[c], last[c], 0x20);
    columns[c + 4] = _mm256_permute2f128_ps(first[c], last[c], 0x31);
  }
}
/// Lane r of columns[c] is lane c of rows[r], of 16.
KVASIR_SIMD_FN void transpose16(const V16* rows, V16* columns) {
  __m256 lo[2][8], hi[2][8];  // [rows 0-7 or 8-15][columns 0-7, 8-15]
  for (int half = 0; half < 2; ++half) {
    __m256 r[8];
    for (int i = 0; i < 8; ++i) r[i] = rows[8 * half + i].lo;
    transpose8(r, lo[half]);
    for (int i = 0; i < 8; ++i) r[i] = rows[8 * half + i].hi;
    transpose8(r, hi[half]);
  }
  for (int c = 0; c < 8; ++c) {
    columns[c] = {lo[0][c], lo[1][c]};
    columns[c + 8] = {hi[0][c], hi[1][c]};
  }
}

KVASIR_SIMD_FN void prefetch(const void* p) { __builtin_prefetch(p); }
/// Prefetches into the level-2 cache, not level 1.
KVASIR_SIMD_FN void prefetch_far(const void* p) { __builtin_prefetch(p, 0, 2); }

}  // namespace KVASIR_SIMD_NS
