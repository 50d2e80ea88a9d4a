// Eight rows side by side, rows r and r + 4 in neighbouring 128-bit lanes, for AVX2 and AVX-512: one float of each row,
// and the header bytes of their blocks of 256 weights. The including file defines KVASIR_SIMD_NS.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "math/simd/blocks16.h"

namespace KVASIR_SIMD_NS {

/// Rows of a granule.
static constexpr int kRows = 8;

/// One float of each row.
struct RowFloats {
  __m256 v;
};
KVASIR_SIMD_FN RowFloats no_rows() { return {_mm256_setzero_ps()}; }
KVASIR_SIMD_FN RowFloats load_rows(const float* p) { return {_mm256_loadu_ps(p)}; }
KVASIR_SIMD_FN void store_rows(float* p, RowFloats x) { _mm256_storeu_ps(p, x.v); }
KVASIR_SIMD_FN RowFloats all_rows(float x) { return {_mm256_set1_ps(x)}; }
KVASIR_SIMD_FN RowFloats operator+(RowFloats a, RowFloats b) { return {_mm256_add_ps(a.v, b.v)}; }
KVASIR_SIMD_FN RowFloats negate(RowFloats x) { return {_mm256_xor_ps(x.v, _mm256_set1_ps(-0.0f))}; }
/// a * b + c, rounded once.
KVASIR_SIMD_FN RowFloats fma(RowFloats a, RowFloats b, RowFloats c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }

/// Four bytes of each row: bytes 4j..4j+3 of a lane are byte j of its four rows.
struct RowBytes {
  __m256i v;
};
KVASIR_SIMD_FN RowBytes all_bytes(int byte) { return {_mm256_set1_epi8(static_cast<char>(byte))}; }
KVASIR_SIMD_FN RowBytes operator&(RowBytes a, RowBytes b) { return {_mm256_and_si256(a.v, b.v)}; }
KVASIR_SIMD_FN RowBytes operator|(RowBytes a, RowBytes b) { return {_mm256_or_si256(a.v, b.v)}; }
/// Shifts every byte right. The top bits come from the neighbouring byte, so the result must be masked.
template <int kBy>
KVASIR_SIMD_FN RowBytes shift_right(RowBytes x) {
  return {_mm256_srli_epi16(x.v, kBy)};
}
/// Shifts every byte left; must be masked too.
template <int kBy>
KVASIR_SIMD_FN RowBytes shift_left(RowBytes x) {
  return {_mm256_slli_epi16(x.v, kBy)};
}
KVASIR_SIMD_FN RowBytes operator-(RowBytes a, RowBytes b) { return {_mm256_sub_epi8(a.v, b.v)}; }
/// Bytes i and j of a's rows, then bytes k and l of b's.
template <int i, int j, int k, int l>
KVASIR_SIMD_FN RowBytes pick(RowBytes a, RowBytes b) {
  constexpr int kOrder = i | j << 2 | k << 4 | l << 6;
  return {_mm256_castps_si256(_mm256_shuffle_ps(_mm256_castsi256_ps(a.v), _mm256_castsi256_ps(b.v), kOrder))};
}
KVASIR_SIMD_FN __m128i load16(const std::byte* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }
/// Reads the 16 bytes at `at` of the rows: out[i] has bytes 4i..4i+3.
KVASIR_SIMD_FN void transpose16(const Blocks& rows, int at, RowBytes* out) {
  const auto pair = [&](int r) { return _mm256_set_m128i(load16(rows.row(r + 4) + at), load16(rows.row(r) + at)); };
  const __m256i a = pair(0), b = pair(1), c = pair(2), d = pair(3);
  const __m256i ab0 = _mm256_unpacklo_epi8(a, b), ab1 = _mm256_unpackhi_epi8(a, b), cd0 = _mm256_unpacklo_epi8(c, d),
                cd1 = _mm256_unpackhi_epi8(c, d);
  out[0] = {_mm256_unpacklo_epi16(ab0, cd0)};
  out[1] = {_mm256_unpackhi_epi16(ab0, cd0)};
  out[2] = {_mm256_unpacklo_epi16(ab1, cd1)};
  out[3] = {_mm256_unpackhi_epi16(ab1, cd1)};
}
/// Bytes 0 and 1 of each row as an f16, and bytes 2 and 3 as another.
KVASIR_SIMD_FN void two_halves(RowBytes x, RowFloats* first, RowFloats* last) {
  const __m256i order = _mm256_setr_epi8(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15,  //
                                         0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15);
  const __m256i halves = _mm256_permute4x64_epi64(_mm256_shuffle_epi8(x.v, order), 0xd8);
  first->v = _mm256_cvtph_ps(_mm256_castsi256_si128(halves));
  last->v = _mm256_cvtph_ps(_mm256_extracti128_si256(halves, 1));
}
// Reorders: bytes 8j..8j+7 of the result are byte j of rows 0..7.
KVASIR_SIMD_FN __m256i by_byte(RowBytes x) {
  return _mm256_permutevar8x32_epi32(x.v, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}
template <int i>
KVASIR_SIMD_FN __m128i half_of(__m256i x) {
  return i == 0 ? _mm256_castsi256_si128(x) : _mm256_extracti128_si256(x, 1);
}

KVASIR_SIMD_FN int half_bits(const std::byte* p) {
  uint16_t h;
  std::memcpy(&h, p, sizeof h);
  return h;
}
/// The f16 at `at` of each row. Inserted one by one: a vector load right after several smaller stores would stall.
KVASIR_SIMD_FN RowFloats row_halves(const Blocks& rows, size_t at) {
  __m128i h = _mm_cvtsi32_si128(half_bits(rows.row(0) + at));
  h = _mm_insert_epi16(h, half_bits(rows.row(1) + at), 1);
  h = _mm_insert_epi16(h, half_bits(rows.row(2) + at), 2);
  h = _mm_insert_epi16(h, half_bits(rows.row(3) + at), 3);
  h = _mm_insert_epi16(h, half_bits(rows.row(4) + at), 4);
  h = _mm_insert_epi16(h, half_bits(rows.row(5) + at), 5);
  h = _mm_insert_epi16(h, half_bits(rows.row(6) + at), 6);
  h = _mm_insert_epi16(h, half_bits(rows.row(7) + at), 7);
  return {_mm256_cvtph_ps(h)};
}

}  // namespace KVASIR_SIMD_NS
