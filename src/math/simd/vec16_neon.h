// 16 float lanes in four 128-bit registers (Armv8-A, 64-bit). Only the operations; the kernels are in kernels_*_simd.h.
// The including file defines KVASIR_SIMD_NS, the namespace of everything here. Same API as the other vec16_*.h.
#pragma once

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "math/simd/vec16_common.h"

#ifndef KVASIR_SIMD_NS
#error "define KVASIR_SIMD_NS, for example kvasir::neon, before including math/vec16_neon.h"
#endif

namespace KVASIR_SIMD_NS {

/// Number of V16 that fit the registers.
static constexpr int kVectors = 8;

struct V16 {
  float32x4_t q0, q1, q2, q3;
  static KVASIR_SIMD_MEMBER V16 broadcast(float x) {
    return {vdupq_n_f32(x), vdupq_n_f32(x), vdupq_n_f32(x), vdupq_n_f32(x)};
  }
};

/// A lane mask: all ones or all zeros in each lane.
struct M16 {
  uint32x4_t q0, q1, q2, q3;
};

KVASIR_SIMD_FN V16 load(const float* p) {
  return {vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12)};
}
KVASIR_SIMD_FN void store(float* p, V16 x) {
  vst1q_f32(p, x.q0);
  vst1q_f32(p + 4, x.q1);
  vst1q_f32(p + 8, x.q2);
  vst1q_f32(p + 12, x.q3);
}
/// Reads the first n (0..16) lanes and no element past n; the others are +0.
KVASIR_SIMD_FN V16 load_n(const float* p, int n) {
  float tail[16] = {};
  __builtin_memcpy(tail, p, static_cast<size_t>(n) * sizeof tail[0]);
  return load(tail);
}
/// Writes only the first n (0..16) lanes.
KVASIR_SIMD_FN void store_n(float* p, V16 x, int n) {
  float all[16];
  store(all, x);
  __builtin_memcpy(p, all, static_cast<size_t>(n) * sizeof all[0]);
}

alignas(16) static constexpr float kIota[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
alignas(16) static constexpr uint32_t kLaneBits[16] = {1u << 0,  1u << 1,  1u << 2,  1u << 3, 1u << 4,  1u << 5,
                                                       1u << 6,  1u << 7,  1u << 8,  1u << 9, 1u << 10, 1u << 11,
                                                       1u << 12, 1u << 13, 1u << 14, 1u << 15};

KVASIR_SIMD_FN V16 set1(float x) { return V16::broadcast(x); }
KVASIR_SIMD_FN V16 zero() { return V16::broadcast(0.0f); }
KVASIR_SIMD_FN V16 iota() { return load(kIota); }

KVASIR_SIMD_FN V16 operator+(V16 a, V16 b) {
  return {vaddq_f32(a.q0, b.q0), vaddq_f32(a.q1, b.q1), vaddq_f32(a.q2, b.q2), vaddq_f32(a.q3, b.q3)};
}
KVASIR_SIMD_FN V16 operator-(V16 a, V16 b) {
  return {vsubq_f32(a.q0, b.q0), vsubq_f32(a.q1, b.q1), vsubq_f32(a.q2, b.q2), vsubq_f32(a.q3, b.q3)};
}
KVASIR_SIMD_FN V16 operator*(V16 a, V16 b) {
  return {vmulq_f32(a.q0, b.q0), vmulq_f32(a.q1, b.q1), vmulq_f32(a.q2, b.q2), vmulq_f32(a.q3, b.q3)};
}
KVASIR_SIMD_FN V16 operator/(V16 a, V16 b) {
  return {vdivq_f32(a.q0, b.q0), vdivq_f32(a.q1, b.q1), vdivq_f32(a.q2, b.q2), vdivq_f32(a.q3, b.q3)};
}
KVASIR_SIMD_FN V16 sqrt(V16 x) { return {vsqrtq_f32(x.q0), vsqrtq_f32(x.q1), vsqrtq_f32(x.q2), vsqrtq_f32(x.q3)}; }

/// The lanes of one register: lanes kRegLanes * i and on are register i of a V16.
struct Reg {
  float32x4_t v;
};
static constexpr int kRegs = 4, kRegLanes = 4;
KVASIR_SIMD_FN Reg zero_reg() { return {vdupq_n_f32(0)}; }
KVASIR_SIMD_FN Reg load_reg(const float* p) { return {vld1q_f32(p)}; }
KVASIR_SIMD_FN Reg fma(Reg a, Reg b, Reg c) { return {vfmaq_f32(c.v, a.v, b.v)}; }
/// The V16 made of the registers regs[0], regs[stride], ...
KVASIR_SIMD_FN V16 join(const Reg* regs, int stride) {
  return {regs[0].v, regs[stride].v, regs[2 * stride].v, regs[3 * stride].v};
}

/// a * b + c, rounded once.
KVASIR_SIMD_FN V16 fma(V16 a, V16 b, V16 c) {
  return {vfmaq_f32(c.q0, a.q0, b.q0), vfmaq_f32(c.q1, a.q1, b.q1), vfmaq_f32(c.q2, a.q2, b.q2),
          vfmaq_f32(c.q3, a.q3, b.q3)};
}

/// Lane i is bit i of low16.
KVASIR_SIMD_FN M16 mask_bits(uint32_t low16) {
  const uint32x4_t bits = vdupq_n_u32(low16);
  return {vtstq_u32(bits, vld1q_u32(kLaneBits)), vtstq_u32(bits, vld1q_u32(kLaneBits + 4)),
          vtstq_u32(bits, vld1q_u32(kLaneBits + 8)), vtstq_u32(bits, vld1q_u32(kLaneBits + 12))};
}
KVASIR_SIMD_FN M16 gt(V16 a, V16 b) {
  return {vcgtq_f32(a.q0, b.q0), vcgtq_f32(a.q1, b.q1), vcgtq_f32(a.q2, b.q2), vcgtq_f32(a.q3, b.q3)};
}
KVASIR_SIMD_FN M16 lt(V16 a, V16 b) { return gt(b, a); }
KVASIR_SIMD_FN V16 select(M16 m, V16 if_true, V16 if_false) {
  return {vbslq_f32(m.q0, if_true.q0, if_false.q0), vbslq_f32(m.q1, if_true.q1, if_false.q1),
          vbslq_f32(m.q2, if_true.q2, if_false.q2), vbslq_f32(m.q3, if_true.q3, if_false.q3)};
}
/// fma in the first n lanes; the others keep the bits of c.
KVASIR_SIMD_FN V16 fma_n(V16 a, V16 b, V16 c, int n) { return select(mask_bits((1u << n) - 1u), fma(a, b, c), c); }

KVASIR_SIMD_FN V16 abs(V16 x) { return {vabsq_f32(x.q0), vabsq_f32(x.q1), vabsq_f32(x.q2), vabsq_f32(x.q3)}; }
KVASIR_SIMD_FN V16 negate(V16 x) { return {vnegq_f32(x.q0), vnegq_f32(x.q1), vnegq_f32(x.q2), vnegq_f32(x.q3)}; }
KVASIR_SIMD_FN V16 copysign(V16 magnitude, V16 sign_of) {
  const uint32x4_t sign = vdupq_n_u32(0x80000000u);
  return select({sign, sign, sign, sign}, sign_of, magnitude);
}
/// b if either is NaN or both are zeros (vmaxq_f32 differs there).
KVASIR_SIMD_FN V16 max(V16 a, V16 b) { return select(gt(a, b), a, b); }

KVASIR_SIMD_FN float32x4_t pow2_quarter(float32x4_t n) {
  return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(vcvtq_s32_f32(n), vdupq_n_s32(127)), 23));
}
/// 2^n for integer-valued n in [-126, 127].
KVASIR_SIMD_FN V16 pow2(V16 n) {
  return {pow2_quarter(n.q0), pow2_quarter(n.q1), pow2_quarter(n.q2), pow2_quarter(n.q3)};
}

KVASIR_SIMD_FN float32x4_t widen_f16(uint16x4_t h) { return vcvt_f32_f16(vreinterpret_f16_u16(h)); }
KVASIR_SIMD_FN float32x4_t widen_bf16(uint16x4_t h) { return vreinterpretq_f32_u32(vshll_n_u16(h, 16)); }
// Loads bytes, because the address may be odd.
KVASIR_SIMD_FN uint16x8_t load_u16(const void* p, size_t byte) {
  return vreinterpretq_u16_u8(vld1q_u8(static_cast<const uint8_t*>(p) + byte));
}
KVASIR_SIMD_FN V16 load_f16(const void* p) {
  const uint16x8_t lo = load_u16(p, 0), hi = load_u16(p, 16);
  return {widen_f16(vget_low_u16(lo)), widen_f16(vget_high_u16(lo)), widen_f16(vget_low_u16(hi)),
          widen_f16(vget_high_u16(hi))};
}
KVASIR_SIMD_FN V16 load_bf16(const void* p) {
  const uint16x8_t lo = load_u16(p, 0), hi = load_u16(p, 16);
  return {widen_bf16(vget_low_u16(lo)), widen_bf16(vget_high_u16(lo)), widen_bf16(vget_low_u16(hi)),
          widen_bf16(vget_high_u16(hi))};
}
KVASIR_SIMD_FN Reg load_reg_f16(const void* p) { return {widen_f16(vld1_u16(static_cast<const uint16_t*>(p)))}; }
KVASIR_SIMD_FN Reg load_reg_bf16(const void* p) { return {widen_bf16(vld1_u16(static_cast<const uint16_t*>(p)))}; }
KVASIR_SIMD_FN V16 load_f16_n(const void* p, int n) {
  uint16_t tail[16] = {};
  __builtin_memcpy(tail, p, static_cast<size_t>(n) * sizeof tail[0]);
  return load_f16(tail);
}
KVASIR_SIMD_FN V16 load_bf16_n(const void* p, int n) {
  uint16_t tail[16] = {};
  __builtin_memcpy(tail, p, static_cast<size_t>(n) * sizeof tail[0]);
  return load_bf16(tail);
}

// The f16 at the start of a block of integers, in every lane.
KVASIR_SIMD_FN float32x4_t block_scale(const void* block) {
  uint16_t half;
  __builtin_memcpy(&half, block, sizeof half);
  return widen_f16(vdup_n_u16(half));
}
KVASIR_SIMD_FN float32x4_t scaled(float32x4_t scale, int16x4_t w) {
  return vfmaq_f32(vdupq_n_f32(0), scale, vcvtq_f32_s32(vmovl_s16(w)));
}
KVASIR_SIMD_FN V16 scaled(float32x4_t scale, int8x16_t w) {
  const int16x8_t lo = vmovl_s8(vget_low_s8(w)), hi = vmovl_s8(vget_high_s8(w));
  return {scaled(scale, vget_low_s16(lo)), scaled(scale, vget_high_s16(lo)), scaled(scale, vget_low_s16(hi)),
          scaled(scale, vget_high_s16(hi))};
}
/// Decodes a stored block of q8_0 (34 bytes) or q4_0 (18 bytes) to 32 floats, out[0] and out[1]. scale * w is exact;
/// the fma gives a zero the same sign as the codec.
KVASIR_SIMD_FN void load_q8_0(const void* block, V16* out) {
  const float32x4_t scale = block_scale(block);
  const auto* bytes = static_cast<const int8_t*>(block) + 2;
  out[0] = scaled(scale, vld1q_s8(bytes));
  out[1] = scaled(scale, vld1q_s8(bytes + 16));
}
KVASIR_SIMD_FN void load_q4_0(const void* block, V16* out) {
  const float32x4_t scale = block_scale(block);
  const uint8x16_t packed = vld1q_u8(static_cast<const uint8_t*>(block) + 2);
  const int8x16_t eight = vdupq_n_s8(8);
  out[0] = scaled(scale, vsubq_s8(vreinterpretq_s8_u8(vandq_u8(packed, vdupq_n_u8(15))), eight));
  out[1] = scaled(scale, vsubq_s8(vreinterpretq_s8_u8(vshrq_n_u8(packed, 4)), eight));
}

/// fold() adds lane i+8 to lane i, then i+4, i+2, i+1, and returns lane 0; fold_to_four() stops at four lanes.
KVASIR_SIMD_FN float32x4_t fold_to_four(V16 x) { return vaddq_f32(vaddq_f32(x.q0, x.q2), vaddq_f32(x.q1, x.q3)); }
KVASIR_SIMD_FN float fold(V16 x) {
  const float32x4_t four = fold_to_four(x);
  const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
  return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}

// [a0+a2, a1+a3, b0+b2, b1+b3]
KVASIR_SIMD_FN float32x4_t add_halves(float32x4_t a, float32x4_t b) {
  return vaddq_f32(vcombine_f32(vget_low_f32(a), vget_low_f32(b)), vcombine_f32(vget_high_f32(a), vget_high_f32(b)));
}
KVASIR_SIMD_FN float32x4_t fold4(const V16* v) {
  return vpaddq_f32(add_halves(fold_to_four(v[0]), fold_to_four(v[1])),
                    add_halves(fold_to_four(v[2]), fold_to_four(v[3])));
}
/// Lane i is fold(v[i]), with the same bits, for v[0..15]: adds halves while it transposes the vectors.
KVASIR_SIMD_FN V16 fold16(const V16* v) { return {fold4(v), fold4(v + 4), fold4(v + 8), fold4(v + 12)}; }

/// The largest lane; unspecified if a lane is NaN.
KVASIR_SIMD_FN float largest_lane(V16 x) { return vmaxvq_f32(vmaxq_f32(vmaxq_f32(x.q0, x.q1), vmaxq_f32(x.q2, x.q3))); }

// Lane r of columns[c] is lane c of rows[r], of 4.
KVASIR_SIMD_FN void transpose4(const float32x4_t* rows, float32x4_t* columns) {
  const float32x4_t a = vzip1q_f32(rows[0], rows[2]), b = vzip2q_f32(rows[0], rows[2]),
                    c = vzip1q_f32(rows[1], rows[3]), d = vzip2q_f32(rows[1], rows[3]);
  columns[0] = vzip1q_f32(a, c);
  columns[1] = vzip2q_f32(a, c);
  columns[2] = vzip1q_f32(b, d);
  columns[3] = vzip2q_f32(b, d);
}
/// Lane r of columns[c] is lane c of rows[r], of 16.
KVASIR_SIMD_FN void transpose16(const V16* rows, V16* columns) {
  float32x4_t t[4][16];  // [rows 4i to 4i+3][column]
  for (int i = 0; i < 4; ++i) {
    const V16* r = rows + 4 * i;
    const float32x4_t quarters[4][4] = {{r[0].q0, r[1].q0, r[2].q0, r[3].q0},
                                        {r[0].q1, r[1].q1, r[2].q1, r[3].q1},
                                        {r[0].q2, r[1].q2, r[2].q2, r[3].q2},
                                        {r[0].q3, r[1].q3, r[2].q3, r[3].q3}};
    for (int g = 0; g < 4; ++g) transpose4(quarters[g], t[i] + 4 * g);
  }
  for (int c = 0; c < 16; ++c) columns[c] = {t[0][c], t[1][c], t[2][c], t[3][c]};
}

KVASIR_SIMD_FN void prefetch(const void* p) { __builtin_prefetch(p); }
/// Prefetches into the level-2 cache, not level 1.
KVASIR_SIMD_FN void prefetch_far(const void* p) { __builtin_prefetch(p, 0, 2); }

}  // namespace KVASIR_SIMD_NS
