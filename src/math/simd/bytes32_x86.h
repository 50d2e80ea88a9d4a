// 32 bytes of one row of integer weights in a 256-bit register, for AVX2 and AVX-512, and the operations that unpack a
// stored part. The including file defines KVASIR_SIMD_NS.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "math/simd/blocks16.h"

namespace KVASIR_SIMD_NS {

struct B32 {
  __m256i v;
};

KVASIR_SIMD_FN B32 load_b32(const void* p) { return {_mm256_loadu_si256(static_cast<const __m256i*>(p))}; }
KVASIR_SIMD_FN B32 operator|(B32 a, B32 b) { return {_mm256_or_si256(a.v, b.v)}; }
KVASIR_SIMD_FN B32 operator&(B32 a, B32 b) { return {_mm256_and_si256(a.v, b.v)}; }
KVASIR_SIMD_FN B32 set1_b(int byte) { return {_mm256_set1_epi8(static_cast<char>(byte))}; }

/// low4: the low four bits of every byte; high4: the high four.
KVASIR_SIMD_FN B32 low4(B32 x) { return x & set1_b(15); }
KVASIR_SIMD_FN B32 high4(B32 x) { return low4({_mm256_srli_epi16(x.v, 4)}); }
/// Reads 16 bytes; returns their low four bits, then their high four.
KVASIR_SIMD_FN B32 load_nibbles(const void* p) {
  const __m128i packed = _mm_loadu_si128(static_cast<const __m128i*>(p));
  return low4({_mm256_set_m128i(_mm_srli_epi16(packed, 4), packed)});
}
/// Looks up each index (below 16) in a table of 16 bytes.
KVASIR_SIMD_FN B32 look_up(const void* table, B32 index) {
  const __m128i bytes = _mm_loadu_si128(static_cast<const __m128i*>(table));
  return {_mm256_shuffle_epi8(_mm256_broadcastsi128_si256(bytes), index.v)};
}
/// (x >> from) & mask in every byte, times 2^kTo, which must fit.
template <int kTo>
KVASIR_SIMD_FN B32 bits_of(B32 x, int from, int mask) {
  const B32 bits = B32{_mm256_srl_epi16(x.v, _mm_cvtsi32_si128(from))} & set1_b(mask);
  return {_mm256_slli_epi16(bits.v, kTo)};
}
/// Byte j is 16 if bit j is set, else 0.
KVASIR_SIMD_FN B32 spread_at4(uint32_t bits) {
  const __m256i byte_of =
      _mm256_setr_epi64x(0x0000000000000000, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
  const __m256i bit_of = _mm256_set1_epi64x(static_cast<int64_t>(0x8040201008040201));
  const __m256i bytes = _mm256_shuffle_epi8(_mm256_set1_epi32(static_cast<int32_t>(bits)), byte_of);
  return B32{_mm256_cmpeq_epi8(_mm256_and_si256(bytes, bit_of), bit_of)} & set1_b(16);
}
// The two bytes at `at` of rows from..from+7. Inserted one by one: a vector load right after several smaller stores
// would stall.
KVASIR_SIMD_FN __m128i eight_halves(const Blocks& blocks, int from, int at) {
  const auto half = [&](int r) {
    uint16_t h;
    __builtin_memcpy(&h, blocks.row(from + r) + at, sizeof h);
    return h;
  };
  __m128i x = _mm_cvtsi32_si128(half(0));
  x = _mm_insert_epi16(x, half(1), 1);
  x = _mm_insert_epi16(x, half(2), 2);
  x = _mm_insert_epi16(x, half(3), 3);
  x = _mm_insert_epi16(x, half(4), 4);
  x = _mm_insert_epi16(x, half(5), 5);
  x = _mm_insert_epi16(x, half(6), 6);
  return _mm_insert_epi16(x, half(7), 7);
}

/// Adds 128 to signed bytes, so that they are unsigned.
KVASIR_SIMD_FN B32 plus128(B32 x) { return {_mm256_xor_si256(x.v, set1_b(128).v)}; }

}  // namespace KVASIR_SIMD_NS
