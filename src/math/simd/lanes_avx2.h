// Registers of integer weights: one piece of 16 bytes of two rows in each, and sums of eight rows' products (AVX2, with
// or without AVX-VNNI). Same API as lanes_avx512.h.
#pragma once

#include "math/simd/int16_avx2.h"
#include "math/simd/lanes_x86.h"

namespace KVASIR_SIMD_NS {

/// Pieces of 16 bytes of each row that a register holds.
static constexpr int kPieces = 1;

/// A piece of rows r and r + 4; or 4 words of 32 bits of each; or 4 floats of each.
struct Bytes {
  __m256i v;
};
struct Words {
  __m256i v;
};
struct Floats {
  __m256 v;
};

KVASIR_SIMD_FN Bytes set1_bytes(int byte) { return {_mm256_set1_epi8(static_cast<char>(byte))}; }
KVASIR_SIMD_FN Bytes operator&(Bytes a, Bytes b) { return {_mm256_and_si256(a.v, b.v)}; }
KVASIR_SIMD_FN Bytes operator|(Bytes a, Bytes b) { return {_mm256_or_si256(a.v, b.v)}; }
KVASIR_SIMD_FN Bytes low4(Bytes x) { return x & set1_bytes(15); }
KVASIR_SIMD_FN Bytes high4(Bytes x) { return low4(Bytes{_mm256_srli_epi16(x.v, 4)}); }
/// Signed bytes in the form that products take: plus 128 if kSignedWeights is false.
KVASIR_SIMD_FN Bytes as_weights(Bytes x) { return kSignedWeights ? x : Bytes{plus128(B32{x.v}).v}; }
/// The 16 bytes at p, for every piece of both rows.
KVASIR_SIMD_FN Bytes everywhere(const void* p) {
  return {_mm256_broadcastsi128_si256(_mm_loadu_si128(static_cast<const __m128i*>(p)))};
}
/// The pieces at p, for both rows: for_both_rows() piece by piece, twice() row by row.
KVASIR_SIMD_FN Bytes for_both_rows(const void* p) { return everywhere(p); }
KVASIR_SIMD_FN Bytes twice(const void* p) { return everywhere(p); }
/// The 16 bytes at a and at b, for every piece of rows r and r + 4.
KVASIR_SIMD_FN Bytes everywhere(const std::byte* a, const std::byte* b) {
  return {_mm256_set_m128i(load16(b), load16(a))};
}
/// Byte j of each piece becomes its byte index[j].
KVASIR_SIMD_FN Bytes shuffle_pieces(Bytes x, Bytes index) { return {_mm256_shuffle_epi8(x.v, index.v)}; }
/// kValue in each byte where x has the bit of `bits`, else 0. Requires: at most one bit in each byte of `bits`.
template <int kValue>
KVASIR_SIMD_FN Bytes where(Bytes x, Bytes bits) {
  return Bytes{_mm256_cmpeq_epi8(_mm256_and_si256(x.v, bits.v), bits.v)} & set1_bytes(kValue);
}

/// The 16 bytes at kFrom of block kBlock, of the rows at a and b. Blocks have kStep bytes, and `n` of them exist.
template <int kStep, int kFrom, int kBlock, bool kWhole>
KVASIR_SIMD_FN Bytes pieces(const std::byte* a, const std::byte* b, int) {
  return everywhere(a + kBlock * kStep + kFrom, b + kBlock * kStep + kFrom);
}
/// The same for blocks of any length.
template <int kStep, int kFrom, int kBlock, bool kWhole>
KVASIR_SIMD_FN Bytes odd_pieces(const std::byte* a, const std::byte* b, int n) {
  return pieces<kStep, kFrom, kBlock, kWhole>(a, b, n);
}
/// The first and the last 16 of the 32 bytes at a and b.
KVASIR_SIMD_FN void split32(const std::byte* a, const std::byte* b, Bytes* first, Bytes* last) {
  *first = everywhere(a, b);
  *last = everywhere(a + 16, b + 16);
}
/// One piece each at a and b.
KVASIR_SIMD_FN Bytes consecutive(const std::byte* a, const std::byte* b) { return everywhere(a, b); }
/// Bits 2q and 2q + 1 of every byte, moved to bits kTo and kTo + 1.
template <int q, int kTo>
KVASIR_SIMD_FN Bytes bit_pair(Bytes x) {
  constexpr int kLeft = kTo - 2 * q;
  const __m256i moved = kLeft > 0 ? _mm256_slli_epi16(x.v, kLeft) : _mm256_srli_epi16(x.v, -kLeft);
  return Bytes{moved} & set1_bytes(3 << kTo);
}

// ---- products: unsigned weights of kBits bits, signed activations; weights of 8 bits are signed too --------------

/// Sums of products in each lane, not yet added to one sum.
template <int kBits>
struct Products {
  __m256i v;
};
template <int kBits>
KVASIR_SIMD_FN Products<kBits> no_products() {
  return {_mm256_setzero_si256()};
}

#ifdef __AVXVNNI__
// Words: sums are widened as they are made.
template <int kBits>
static constexpr bool kHalfWords = false;
#else
// |x| <= 127, so two products of 7 bits fit 16 bits, and four of 5 bits. Only two products of 8 bits
// fit, so 8-bit weights are widened at once.
template <int kBits>
static constexpr bool kHalfWords = kBits != 8;
#endif

template <int kBits>
KVASIR_SIMD_FN Products<kBits> add_products(Products<kBits> sum, Bytes w, Bytes x) {
  if constexpr (kHalfWords<kBits>) return {_mm256_add_epi16(sum.v, _mm256_maddubs_epi16(w.v, x.v))};
  return {add_quads<kBits == 8>(sum.v, w.v, x.v)};
}
template <int kBits>
KVASIR_SIMD_FN __m256i as_words(Products<kBits> x) {
  if constexpr (kHalfWords<kBits>) return _mm256_madd_epi16(x.v, _mm256_set1_epi16(1));
  return x.v;
}

// For weights of at most 4 bits: each 16-bit lane is a sum of four products, and four such sums still fit 16 bits.
KVASIR_SIMD_FN Words sum_rows_of_halves(__m256i a, __m256i b, __m256i c, __m256i d) {
  const __m256i ab = _mm256_add_epi16(_mm256_unpacklo_epi16(a, b), _mm256_unpackhi_epi16(a, b)),
                cd = _mm256_add_epi16(_mm256_unpacklo_epi16(c, d), _mm256_unpackhi_epi16(c, d)),
                abcd = _mm256_add_epi16(_mm256_unpacklo_epi32(ab, cd), _mm256_unpackhi_epi32(ab, cd));
  const __m256i pairs = _mm256_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15,  //
                                         0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15);
  return {_mm256_madd_epi16(_mm256_shuffle_epi8(abcd, pairs), _mm256_set1_epi16(1))};
}
/// From registers of rows 0 and 4, 1 and 5, 2 and 6, 3 and 7: each row's sum of products, in the order of rows.
template <int kBits>
KVASIR_SIMD_FN Words sum_rows(const Products<kBits>* rows) {
  if constexpr (kBits <= 4 && kHalfWords<kBits>) return sum_rows_of_halves(rows[0].v, rows[1].v, rows[2].v, rows[3].v);
  const __m256i a = as_words(rows[0]), b = as_words(rows[1]), c = as_words(rows[2]), d = as_words(rows[3]);
  const __m256i ab = _mm256_add_epi32(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b)),
                cd = _mm256_add_epi32(_mm256_unpacklo_epi32(c, d), _mm256_unpackhi_epi32(c, d));
  return {_mm256_add_epi32(_mm256_unpacklo_epi64(ab, cd), _mm256_unpackhi_epi64(ab, cd))};
}

KVASIR_SIMD_FN Words operator+(Words a, Words b) { return {_mm256_add_epi32(a.v, b.v)}; }
KVASIR_SIMD_FN Words operator-(Words a, Words b) { return {_mm256_sub_epi32(a.v, b.v)}; }
template <int kBy>
KVASIR_SIMD_FN Words shift_left(Words x) {
  return {_mm256_slli_epi32(x.v, kBy)};
}
KVASIR_SIMD_FN Words operator*(Words a, Words b) { return {_mm256_mullo_epi32(a.v, b.v)}; }
KVASIR_SIMD_FN Floats to_float(Words x) { return {_mm256_cvtepi32_ps(x.v)}; }
KVASIR_SIMD_FN Floats operator-(Floats a, Floats b) { return {_mm256_sub_ps(a.v, b.v)}; }
KVASIR_SIMD_FN Floats operator*(Floats a, Floats b) { return {_mm256_mul_ps(a.v, b.v)}; }
KVASIR_SIMD_FN Floats set1_floats(float x) { return {_mm256_set1_ps(x)}; }
KVASIR_SIMD_FN Floats load_floats(const float* p) { return {_mm256_loadu_ps(p)}; }
KVASIR_SIMD_FN void store(float* p, Floats x) { _mm256_storeu_ps(p, x.v); }
/// Adds the two pieces of a register, or a's and b's if a register holds one piece.
KVASIR_SIMD_FN Words add_pieces(Words a, Words b) { return a + b; }
/// p[i] for piece i of every row.
KVASIR_SIMD_FN Floats each_piece(const float* p) { return {_mm256_broadcast_ss(p)}; }
KVASIR_SIMD_FN Words each_piece(const int32_t* p) { return {_mm256_set1_epi32(*p)}; }
/// The same if pieces are stored row by row.
KVASIR_SIMD_FN Words each_piece_by_row(const int32_t* p) { return each_piece(p); }
KVASIR_SIMD_FN Floats for_all_pieces(RowFloats x) { return {x.v}; }
/// Byte i of each row.
template <int i>
KVASIR_SIMD_FN Floats unsigned_floats(RowBytes x) {
  return to_float(Words{_mm256_cvtepu8_epi32(_mm_srli_si128(half_of<i / 2>(by_byte(x)), i % 2 * 8))});
}
template <int i>
KVASIR_SIMD_FN Words signed_words(RowBytes x) {
  return {_mm256_cvtepi8_epi32(_mm_srli_si128(half_of<i / 2>(by_byte(x)), i % 2 * 8))};
}
/// The f16 at kFrom of the rows' blocks, of which n exist.
template <int kStep, int kFrom, bool kWhole>
KVASIR_SIMD_FN void block_halves(const Blocks& rows, int n, Floats* out) {
  KVASIR_UNROLL
  for (int b = 0; b < 4; ++b)
    if (kWhole || b < n) out[b].v = row_halves(rows, static_cast<size_t>(kFrom + b * kStep)).v;
}

}  // namespace KVASIR_SIMD_NS
