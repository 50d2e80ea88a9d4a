// 32 bytes of one row of integer weights in two 128-bit registers, and the operations that unpack a stored part. Same
// API as bytes32_x86.h. The including file defines KVASIR_SIMD_NS.
#pragma once

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

#include "math/simd/vec16_common.h"

namespace KVASIR_SIMD_NS {

struct B32 {
  uint8x16_t lo, hi;
};

KVASIR_SIMD_FN B32 load_b32(const void* p) {
  const auto* bytes = static_cast<const uint8_t*>(p);
  return {vld1q_u8(bytes), vld1q_u8(bytes + 16)};
}
KVASIR_SIMD_FN B32 operator|(B32 a, B32 b) { return {vorrq_u8(a.lo, b.lo), vorrq_u8(a.hi, b.hi)}; }
KVASIR_SIMD_FN B32 operator&(B32 a, B32 b) { return {vandq_u8(a.lo, b.lo), vandq_u8(a.hi, b.hi)}; }
KVASIR_SIMD_FN B32 set1_b(int byte) {
  const uint8x16_t all = vdupq_n_u8(static_cast<uint8_t>(byte));
  return {all, all};
}

/// low4: the low four bits of every byte; high4: the high four.
KVASIR_SIMD_FN B32 low4(B32 x) { return x & set1_b(15); }
KVASIR_SIMD_FN B32 high4(B32 x) { return {vshrq_n_u8(x.lo, 4), vshrq_n_u8(x.hi, 4)}; }
/// Reads 16 bytes; returns their low four bits, then their high four.
KVASIR_SIMD_FN B32 load_nibbles(const void* p) {
  const uint8x16_t packed = vld1q_u8(static_cast<const uint8_t*>(p));
  return {vandq_u8(packed, vdupq_n_u8(15)), vshrq_n_u8(packed, 4)};
}
/// Looks up each index (below 16) in a table of 16 bytes.
KVASIR_SIMD_FN B32 look_up(const void* table, B32 index) {
  const uint8x16_t bytes = vld1q_u8(static_cast<const uint8_t*>(table));
  return {vqtbl1q_u8(bytes, index.lo), vqtbl1q_u8(bytes, index.hi)};
}
/// (x >> from) & mask in every byte, times 2^kTo, which must fit.
template <int kTo>
KVASIR_SIMD_FN B32 bits_of(B32 x, int from, int mask) {
  const int8x16_t right = vdupq_n_s8(static_cast<int8_t>(-from));
  const B32 bits = B32{vshlq_u8(x.lo, right), vshlq_u8(x.hi, right)} & set1_b(mask);
  return {vshlq_n_u8(bits.lo, kTo), vshlq_n_u8(bits.hi, kTo)};
}
/// Byte j is 16 if bit j is set, else 0.
KVASIR_SIMD_FN B32 spread_at4(uint32_t bits) {
  const auto byte = [bits](int i) { return vdup_n_u8(static_cast<uint8_t>(bits >> (8 * i))); };
  const uint8x16_t bit_of = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201));
  return B32{vtstq_u8(vcombine_u8(byte(0), byte(1)), bit_of), vtstq_u8(vcombine_u8(byte(2), byte(3)), bit_of)} &
         set1_b(16);
}
/// Adds 128 to signed bytes, so that they are unsigned.
KVASIR_SIMD_FN B32 plus128(B32 x) {
  const uint8x16_t top = vdupq_n_u8(128);
  return {veorq_u8(x.lo, top), veorq_u8(x.hi, top)};
}

}  // namespace KVASIR_SIMD_NS
