// Registers of integer weights: one piece of 16 bytes of one row in each, and sums of four rows' products (Armv8-A,
// with or without its dot-product extension). Same API as lanes_avx2.h.
#pragma once

#include "math/simd/int16_neon.h"

namespace KVASIR_SIMD_NS {

/// Rows of a granule; pieces of 16 bytes of each row that a register holds.
static constexpr int kRows = 4, kPieces = 1;

/// 16 bytes; 4 words of 32 bits; 4 floats.
struct Bytes {
  uint8x16_t v;
};
struct Words {
  int32x4_t v;
};
struct RowFloats {
  float32x4_t v;
};
using Floats = RowFloats;

KVASIR_SIMD_FN RowFloats no_rows() { return {vdupq_n_f32(0)}; }
KVASIR_SIMD_FN RowFloats load_rows(const float* p) { return {vld1q_f32(p)}; }
KVASIR_SIMD_FN void store_rows(float* p, RowFloats x) { vst1q_f32(p, x.v); }
KVASIR_SIMD_FN Floats load_floats(const float* p) { return {vld1q_f32(p)}; }
KVASIR_SIMD_FN void store(float* p, Floats x) { vst1q_f32(p, x.v); }
KVASIR_SIMD_FN RowFloats all_rows(float x) { return {vdupq_n_f32(x)}; }
KVASIR_SIMD_FN RowFloats operator+(RowFloats a, RowFloats b) { return {vaddq_f32(a.v, b.v)}; }
KVASIR_SIMD_FN RowFloats operator-(RowFloats a, RowFloats b) { return {vsubq_f32(a.v, b.v)}; }
KVASIR_SIMD_FN RowFloats operator*(RowFloats a, RowFloats b) { return {vmulq_f32(a.v, b.v)}; }
KVASIR_SIMD_FN RowFloats set1_floats(float x) { return {vdupq_n_f32(x)}; }
KVASIR_SIMD_FN RowFloats negate(RowFloats x) { return {vnegq_f32(x.v)}; }
/// a * b + c, rounded once.
KVASIR_SIMD_FN RowFloats fma(RowFloats a, RowFloats b, RowFloats c) { return {vfmaq_f32(c.v, a.v, b.v)}; }

KVASIR_SIMD_FN Bytes everywhere(const void* p) { return {vld1q_u8(static_cast<const uint8_t*>(p))}; }
KVASIR_SIMD_FN Bytes set1_bytes(int byte) { return {vdupq_n_u8(static_cast<uint8_t>(byte))}; }
KVASIR_SIMD_FN Bytes operator&(Bytes a, Bytes b) { return {vandq_u8(a.v, b.v)}; }
KVASIR_SIMD_FN Bytes operator|(Bytes a, Bytes b) { return {vorrq_u8(a.v, b.v)}; }
KVASIR_SIMD_FN Bytes low4(Bytes x) { return x & set1_bytes(15); }
KVASIR_SIMD_FN Bytes high4(Bytes x) { return {vshrq_n_u8(x.v, 4)}; }
/// Signed bytes in the form that products take: plus 128 if kSignedWeights is false, which it is not here.
KVASIR_SIMD_FN Bytes as_weights(Bytes x) { return x; }
/// The pieces at p, the same for every row.
KVASIR_SIMD_FN Bytes for_both_rows(const void* p) { return everywhere(p); }
KVASIR_SIMD_FN Bytes twice(const void* p) { return everywhere(p); }
/// The 16 bytes at a. On targets whose registers hold two rows, those at b are the other row's.
KVASIR_SIMD_FN Bytes everywhere(const std::byte* a, const std::byte*) { return everywhere(a); }
/// Byte j of each piece becomes its byte index[j].
KVASIR_SIMD_FN Bytes shuffle_pieces(Bytes x, Bytes index) { return {vqtbl1q_u8(x.v, index.v)}; }
/// kValue in each byte where x has one of the bits, else 0.
template <int kValue>
KVASIR_SIMD_FN Bytes where(Bytes x, Bytes bits) {
  return Bytes{vtstq_u8(x.v, bits.v)} & set1_bytes(kValue);
}
/// The 16 bytes at kFrom of block kBlock of the row at a. Blocks have kStep bytes.
template <int kStep, int kFrom, int kBlock, bool kWhole>
KVASIR_SIMD_FN Bytes pieces(const std::byte* a, const std::byte*, int) {
  return everywhere(a + kBlock * kStep + kFrom);
}
/// The same for blocks of any length.
template <int kStep, int kFrom, int kBlock, bool kWhole>
KVASIR_SIMD_FN Bytes odd_pieces(const std::byte* a, const std::byte* b, int n) {
  return pieces<kStep, kFrom, kBlock, kWhole>(a, b, n);
}
/// The first and the last 16 of the 32 bytes at a.
KVASIR_SIMD_FN void split32(const std::byte* a, const std::byte*, Bytes* first, Bytes* last) {
  *first = everywhere(a);
  *last = everywhere(a + 16);
}
KVASIR_SIMD_FN Bytes consecutive(const std::byte* a, const std::byte*) { return everywhere(a); }
/// Bits 2q and 2q + 1 of every byte, moved to bits kTo and kTo + 1.
template <int q, int kTo>
KVASIR_SIMD_FN Bytes bit_pair(Bytes x) {
  return Bytes{vshlq_u8(x.v, vdupq_n_s8(kTo - 2 * q))} & set1_bytes(3 << kTo);
}

// ---- products ---------------------------------------------------------------------------------------------------

/// Sums of products in each lane, not yet added to one sum. Unsigned weights are below 128, so all weights are signed
/// bytes.
template <int kBits>
struct Products {
  int32x4_t v;
};
template <int kBits>
KVASIR_SIMD_FN Products<kBits> no_products() {
  return {vdupq_n_s32(0)};
}
template <int kBits>
KVASIR_SIMD_FN Products<kBits> add_products(Products<kBits> sum, Bytes w, Bytes x) {
  const int8x16_t a = vreinterpretq_s8_u8(w.v), b = vreinterpretq_s8_u8(x.v);
#ifdef __ARM_FEATURE_DOTPROD
  return {vdotq_s32(sum.v, a, b)};
#else
  return {vpadalq_s16(sum.v, vmlal_s8(vmull_s8(vget_low_s8(a), vget_low_s8(b)), vget_high_s8(a), vget_high_s8(b)))};
#endif
}
/// Word r is the sum of row r's products.
template <int kBits>
KVASIR_SIMD_FN Words sum_rows(const Products<kBits>* rows) {
  return {vpaddq_s32(vpaddq_s32(rows[0].v, rows[1].v), vpaddq_s32(rows[2].v, rows[3].v))};
}

KVASIR_SIMD_FN Words operator+(Words a, Words b) { return {vaddq_s32(a.v, b.v)}; }
KVASIR_SIMD_FN Words operator-(Words a, Words b) { return {vsubq_s32(a.v, b.v)}; }
template <int kBy>
KVASIR_SIMD_FN Words shift_left(Words x) {
  return {vshlq_n_s32(x.v, kBy)};
}
KVASIR_SIMD_FN Words operator*(Words a, Words b) { return {vmulq_s32(a.v, b.v)}; }
KVASIR_SIMD_FN Floats to_float(Words x) { return {vcvtq_f32_s32(x.v)}; }
KVASIR_SIMD_FN Words add_pieces(Words a, Words b) { return a + b; }
KVASIR_SIMD_FN Floats each_piece(const float* p) { return {vdupq_n_f32(*p)}; }
KVASIR_SIMD_FN Words each_piece(const int32_t* p) { return {vdupq_n_s32(*p)}; }
KVASIR_SIMD_FN Words each_piece_by_row(const int32_t* p) { return each_piece(p); }
KVASIR_SIMD_FN Floats for_all_pieces(RowFloats x) { return x; }

/// Bytes 4j..4j+3 are byte j of four rows.
struct RowBytes {
  uint8x16_t v;
};
KVASIR_SIMD_FN RowBytes all_bytes(int byte) { return {vdupq_n_u8(static_cast<uint8_t>(byte))}; }
KVASIR_SIMD_FN RowBytes operator&(RowBytes a, RowBytes b) { return {vandq_u8(a.v, b.v)}; }
KVASIR_SIMD_FN RowBytes operator|(RowBytes a, RowBytes b) { return {vorrq_u8(a.v, b.v)}; }
template <int kBy>
KVASIR_SIMD_FN RowBytes shift_right(RowBytes x) {
  return {vshrq_n_u8(x.v, kBy)};
}
template <int kBy>
KVASIR_SIMD_FN RowBytes shift_left(RowBytes x) {
  return {vshlq_n_u8(x.v, kBy)};
}
KVASIR_SIMD_FN RowBytes operator-(RowBytes a, RowBytes b) { return {vsubq_u8(a.v, b.v)}; }
/// Bytes i and j of a's rows, then bytes k and l of b's.
template <int i, int j, int k, int l>
KVASIR_SIMD_FN RowBytes pick(RowBytes a, RowBytes b) {
  return {vreinterpretq_u8_u32(
      __builtin_shufflevector(vreinterpretq_u32_u8(a.v), vreinterpretq_u32_u8(b.v), i, j, 4 + k, 4 + l))};
}
/// Reads the 16 bytes at `at` of four rows: out[i] has bytes 4i..4i+3.
KVASIR_SIMD_FN void transpose16(const Blocks& rows, int at, RowBytes* out) {
  const auto row = [&](int r) { return everywhere(rows.row(r) + at).v; };
  const auto pairs = [](uint8x16_t x) { return vreinterpretq_u16_u8(x); };
  const uint16x8_t ab0 = pairs(vzip1q_u8(row(0), row(1))), ab1 = pairs(vzip2q_u8(row(0), row(1))),
                   cd0 = pairs(vzip1q_u8(row(2), row(3))), cd1 = pairs(vzip2q_u8(row(2), row(3)));
  out[0] = {vreinterpretq_u8_u16(vzip1q_u16(ab0, cd0))};
  out[1] = {vreinterpretq_u8_u16(vzip2q_u16(ab0, cd0))};
  out[2] = {vreinterpretq_u8_u16(vzip1q_u16(ab1, cd1))};
  out[3] = {vreinterpretq_u8_u16(vzip2q_u16(ab1, cd1))};
}
// f16 numbers whose low bytes are the first four of a, and whose high bytes are the first four of b.
KVASIR_SIMD_FN RowFloats halves_of(uint8x16_t a, uint8x16_t b) {
  return {widen_f16(vget_low_u16(vreinterpretq_u16_u8(vzip1q_u8(a, b))))};
}
/// Bytes 0 and 1 of each row as an f16, and bytes 2 and 3 as another.
KVASIR_SIMD_FN void two_halves(RowBytes x, RowFloats* first, RowFloats* last) {
  *first = halves_of(x.v, vextq_u8(x.v, x.v, 4));
  *last = halves_of(vextq_u8(x.v, x.v, 8), vextq_u8(x.v, x.v, 12));
}
/// Byte i of four rows.
template <int i>
KVASIR_SIMD_FN uint16x4_t four_bytes(RowBytes x) {
  return vget_low_u16(vmovl_u8(vget_low_u8(vextq_u8(x.v, x.v, 4 * i))));
}
template <int i>
KVASIR_SIMD_FN Floats unsigned_floats(RowBytes x) {
  return {vcvtq_f32_u32(vmovl_u16(four_bytes<i>(x)))};
}
template <int i>
KVASIR_SIMD_FN Words signed_words(RowBytes x) {
  return {vmovl_s16(vget_low_s16(vmovl_s8(vget_low_s8(vreinterpretq_s8_u8(vextq_u8(x.v, x.v, 4 * i))))))};
}
/// The f16 at `at` of four rows.
KVASIR_SIMD_FN RowFloats row_halves(const Blocks& rows, size_t at) {
  uint16_t h[4];
  for (int r = 0; r < 4; ++r) std::memcpy(h + r, rows.row(r) + at, sizeof *h);
  return {widen_f16(vld1_u16(h))};
}
/// The f16 at kFrom of the rows' blocks, of which n exist.
template <int kStep, int kFrom, bool kWhole>
KVASIR_SIMD_FN void block_halves(const Blocks& rows, int n, Floats* out) {
  KVASIR_UNROLL
  for (int b = 0; b < 4; ++b)
    if (kWhole || b < n) out[b] = row_halves(rows, static_cast<size_t>(kFrom + b * kStep));
}

}  // namespace KVASIR_SIMD_NS
