// Rounding activations to ActBlocks in NEON; part of kernels_simd.h. The definition is encode_act of dtype/operands.cc.
#pragma once

#include <arm_neon.h>

#include <cstdint>
#include <cstring>

#include "dtype/operands.h"
#include "math/kernels_matmul_simd.h"

namespace KVASIR_SIMD_NS {
namespace {

using kvasir::ActBlock;
using kvasir::kActElems;

// 16 values in steps of d, rounded to nearest even and clamped to +-127.
inline int8x16_t steps16(const float32x4_t* v, float d) {
  int16x4_t q[4];
  KVASIR_UNROLL
  for (int i = 0; i < 4; ++i) q[i] = vqmovn_s32(vcvtnq_s32_f32(vdivq_f32(v[i], vdupq_n_f32(d))));
  const int8x16_t bytes =
      vcombine_s8(vqmovn_s16(vcombine_s16(q[0], q[1])), vqmovn_s16(vcombine_s16(q[2], q[3])));  // saturated
  return vmaxq_s8(bytes, vdupq_n_s8(-127));
}

inline void encode_act_block(const float* x, ActBlock* out) {
  float32x4_t v[8];
  uint32x4_t most = vdupq_n_u32(0);
  KVASIR_UNROLL
  for (int i = 0; i < 8; ++i) {
    v[i] = vld1q_f32(x + 4 * i);
    most = vmaxq_u32(most, vandq_u32(vreinterpretq_u32_f32(v[i]), vdupq_n_u32(0x7fffffff)));
  }
  const uint32_t largest = vmaxvq_u32(most);
  float amax;
  std::memcpy(&amax, &largest, sizeof amax);
  const bool finite = largest < 0x7f800000u;
  out->d = finite ? amax / 127.0f : __builtin_nanf("");
  const bool any = finite && out->d != 0;
  const int8x16_t none = vdupq_n_s8(0), first = any ? steps16(v, out->d) : none,
                  last = any ? steps16(v + 4, out->d) : none;
  vst1q_s8(out->q, first);
  vst1q_s8(out->q + 16, last);
  out->first = vaddlvq_s8(first);
  out->sum = out->first + vaddlvq_s8(last);
}

void encode_act(const float* x, ActBlock* out, int64_t n) {
  for (int64_t i = 0; i < n; i += kActElems) encode_act_block(x + i, out + i / kActElems);
}

}  // namespace
}  // namespace KVASIR_SIMD_NS
