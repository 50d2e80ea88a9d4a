// 16 int32 lanes in four registers, and sums of byte products (Armv8-A, with or without its dot-product extension).
// Same API as int16_avx2.h.
#pragma once

#include <arm_neon.h>

#include <cstdint>
#include <cstring>

#include "math/simd/blocks16.h"
#include "math/simd/bytes32_neon.h"
#include "math/simd/vec16_neon.h"

namespace KVASIR_SIMD_NS {

struct I16 {
  int32x4_t q0, q1, q2, q3;
};

// Applies f to each register, or to each pair of registers.
template <class F>
KVASIR_SIMD_FN I16 map_i(I16 x, F f) {
  return {f(x.q0), f(x.q1), f(x.q2), f(x.q3)};
}
template <class F>
KVASIR_SIMD_FN I16 map_i(I16 a, I16 b, F f) {
  return {f(a.q0, b.q0), f(a.q1, b.q1), f(a.q2, b.q2), f(a.q3, b.q3)};
}

KVASIR_SIMD_FN I16 set1_i(int32_t x) {
  const int32x4_t all = vdupq_n_s32(x);
  return {all, all, all, all};
}
KVASIR_SIMD_FN I16 load_i(const int32_t* p) {
  return {vld1q_s32(p), vld1q_s32(p + 4), vld1q_s32(p + 8), vld1q_s32(p + 12)};
}
KVASIR_SIMD_FN void store_i(int32_t* p, I16 x) {
  vst1q_s32(p, x.q0);
  vst1q_s32(p + 4, x.q1);
  vst1q_s32(p + 8, x.q2);
  vst1q_s32(p + 12, x.q3);
}
KVASIR_SIMD_FN I16 operator+(I16 a, I16 b) {
  return map_i(a, b, [](int32x4_t x, int32x4_t y) { return vaddq_s32(x, y); });
}
KVASIR_SIMD_FN I16 operator-(I16 a, I16 b) {
  return map_i(a, b, [](int32x4_t x, int32x4_t y) { return vsubq_s32(x, y); });
}
KVASIR_SIMD_FN I16 operator*(I16 a, I16 b) {
  return map_i(a, b, [](int32x4_t x, int32x4_t y) { return vmulq_s32(x, y); });
}
KVASIR_SIMD_FN I16 operator&(I16 a, I16 b) {
  return map_i(a, b, [](int32x4_t x, int32x4_t y) { return vandq_s32(x, y); });
}
KVASIR_SIMD_FN I16 operator|(I16 a, I16 b) {
  return map_i(a, b, [](int32x4_t x, int32x4_t y) { return vorrq_s32(x, y); });
}
KVASIR_SIMD_FN I16 shift_left(I16 x, int n) {
  return map_i(x, [n](int32x4_t v) { return vshlq_s32(v, vdupq_n_s32(n)); });
}
KVASIR_SIMD_FN I16 shift_right(I16 x, int n) {
  return map_i(
      x, [n](int32x4_t v) { return vreinterpretq_s32_u32(vshlq_u32(vreinterpretq_u32_s32(v), vdupq_n_s32(-n))); });
}
KVASIR_SIMD_FN I16 shift_right_signed(I16 x, int n) {
  return map_i(x, [n](int32x4_t v) { return vshlq_s32(v, vdupq_n_s32(-n)); });
}
KVASIR_SIMD_FN V16 to_float(I16 x) {
  return {vcvtq_f32_s32(x.q0), vcvtq_f32_s32(x.q1), vcvtq_f32_s32(x.q2), vcvtq_f32_s32(x.q3)};
}

// Signed weights stay signed, and unsigned ones are below 128: one signed product serves both.
static constexpr bool kSignedWeights = true;

/// 64 bytes: 4 of each of 16 rows.
struct B64 {
  int8x16_t q0, q1, q2, q3;
};
KVASIR_SIMD_FN B64 load_b64(const uint8_t* p) {
  const auto quarter = [p](int i) { return vreinterpretq_s8_u8(vld1q_u8(p + 16 * i)); };
  return {quarter(0), quarter(1), quarter(2), quarter(3)};
}
KVASIR_SIMD_FN int32x4_t dot4_quarter(int32x4_t acc, int8x16_t w, int8x8_t x) {
#ifdef __ARM_FEATURE_DOTPROD
  return vdotq_lane_s32(acc, w, x, 0);
#else
  return vpadalq_s16(acc, vpaddq_s16(vmull_s8(vget_low_s8(w), x), vmull_s8(vget_high_s8(w), x)));
#endif
}
/// Adds to acc[r] the 4 products of row r's bytes with x[0..3]. |w| <= 128 and |x| <= 127, so two products fit 16 bits.
template <bool kSigned>
KVASIR_SIMD_FN I16 dot4(I16 acc, B64 w, const int8_t* x) {
  int32_t four;
  std::memcpy(&four, x, sizeof four);
  const int8x8_t xx = vreinterpret_s8_s32(vdup_n_s32(four));
  return {dot4_quarter(acc.q0, w.q0, xx), dot4_quarter(acc.q1, w.q1, xx), dot4_quarter(acc.q2, w.q2, xx),
          dot4_quarter(acc.q3, w.q3, xx)};
}

// Transposes the 4 x 4 words of four rows: word g of all four goes to out[64 g].
KVASIR_SIMD_FN void store_columns(uint8x16_t a, uint8x16_t b, uint8x16_t c, uint8x16_t d, uint8_t* out) {
  const uint32x4_t wa = vreinterpretq_u32_u8(a), wb = vreinterpretq_u32_u8(b), wc = vreinterpretq_u32_u8(c),
                   wd = vreinterpretq_u32_u8(d);
  const uint64x2_t ab02 = vreinterpretq_u64_u32(vtrn1q_u32(wa, wb)), ab13 = vreinterpretq_u64_u32(vtrn2q_u32(wa, wb));
  const uint64x2_t cd02 = vreinterpretq_u64_u32(vtrn1q_u32(wc, wd)), cd13 = vreinterpretq_u64_u32(vtrn2q_u32(wc, wd));
  vst1q_u8(out, vreinterpretq_u8_u64(vtrn1q_u64(ab02, cd02)));
  vst1q_u8(out + 64, vreinterpretq_u8_u64(vtrn1q_u64(ab13, cd13)));
  vst1q_u8(out + 128, vreinterpretq_u8_u64(vtrn2q_u64(ab02, cd02)));
  vst1q_u8(out + 192, vreinterpretq_u8_u64(vtrn2q_u64(ab13, cd13)));
}
/// Writes bytes 4g..4g+3 of row r to out[64 g + 4 r].
KVASIR_SIMD_FN void interleave(const B32* w, uint8_t* out) {
  for (int r = 0; r < 16; r += 4) {
    store_columns(w[r].lo, w[r + 1].lo, w[r + 2].lo, w[r + 3].lo, out + 4 * r);
    store_columns(w[r].hi, w[r + 1].hi, w[r + 2].hi, w[r + 3].hi, out + 4 * r + 256);
  }
}

/// The f16 at byte `at` of each of 16 rows.
KVASIR_SIMD_FN V16 halves(const Blocks& blocks, int at) {
  uint16_t h[16];
  for (int r = 0; r < 16; ++r) __builtin_memcpy(h + r, blocks.row(r) + at, sizeof *h);
  return load_f16(h);
}

}  // namespace KVASIR_SIMD_NS

#include "math/simd/word_sums.h"
