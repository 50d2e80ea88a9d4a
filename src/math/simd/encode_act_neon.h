// The target-specific parts of encode_act (kernels_integer_simd.h) for NEON.
#pragma once

#include <arm_neon.h>

#include <cstdint>

#include "dtype/operands.h"

namespace KVASIR_SIMD_NS {
namespace {

using kvasir::ActBlock;

// x / d of 16 values, rounded to nearest even and clamped to +-127.
inline int8x16_t steps16(const float* x, float d) {
  int16x4_t q[4];
  KVASIR_UNROLL
  for (int i = 0; i < 4; ++i) q[i] = vqmovn_s32(vcvtnq_s32_f32(vdivq_f32(vld1q_f32(x + 4 * i), vdupq_n_f32(d))));
  const int8x16_t bytes =
      vcombine_s8(vqmovn_s16(vcombine_s16(q[0], q[1])), vqmovn_s16(vcombine_s16(q[2], q[3])));  // saturated
  return vmaxq_s8(bytes, vdupq_n_s8(-127));
}

// The largest magnitude of 32 values, as bits.
inline uint32_t largest_magnitude(const float* x) {
  uint32x4_t most = vdupq_n_u32(0);
  KVASIR_UNROLL
  for (int i = 0; i < 8; ++i)
    most = vmaxq_u32(most, vandq_u32(vreinterpretq_u32_f32(vld1q_f32(x + 4 * i)), vdupq_n_u32(0x7fffffff)));
  return vmaxvq_u32(most);
}

// Computes q and its sums from x and d.
inline void round_act(const float* x, ActBlock* out) {
  const int8x16_t first = steps16(x, out->d), last = steps16(x + 16, out->d);
  vst1q_s8(out->q, first);
  vst1q_s8(out->q + 16, last);
  out->first = vaddlvq_s8(first);
  out->sum = out->first + vaddlvq_s8(last);
}

}  // namespace
}  // namespace KVASIR_SIMD_NS
