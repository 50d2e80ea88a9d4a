// Registers of integer weights: two pieces of 16 bytes of two rows in each, and sums of eight rows' products (AVX-512,
// with or without VNNI). Same API as lanes_avx2.h.
#pragma once

#include "math/simd/int16_avx512.h"
#include "math/simd/lanes_x86.h"

namespace KVASIR_SIMD_NS {

/// Pieces of 16 bytes of each row that a register holds.
static constexpr int kPieces = 2;

/// Two pieces of rows r and r + 4; or as many words of 32 bits; or floats. The order is piece by piece, both rows of
/// each, except where a comment says row by row.
struct Bytes {
  __m512i v;
};
struct Words {
  __m512i v;
};
struct Floats {
  __m512 v;
};

KVASIR_SIMD_FN Bytes set1_bytes(int byte) { return {_mm512_set1_epi8(static_cast<char>(byte))}; }
KVASIR_SIMD_FN Bytes operator&(Bytes a, Bytes b) { return {_mm512_and_si512(a.v, b.v)}; }
KVASIR_SIMD_FN Bytes operator|(Bytes a, Bytes b) { return {_mm512_or_si512(a.v, b.v)}; }
KVASIR_SIMD_FN Bytes low4(Bytes x) { return x & set1_bytes(15); }
KVASIR_SIMD_FN Bytes high4(Bytes x) { return low4(Bytes{_mm512_maskz_srli_epi16(~__mmask32{0}, x.v, 4)}); }
/// Signed bytes in the form that products take: plus 128 if kSignedWeights is false.
KVASIR_SIMD_FN Bytes as_weights(Bytes x) {
  return kSignedWeights ? x : Bytes{_mm512_xor_si512(x.v, set1_bytes(128).v)};
}
/// The 16 bytes at p, for every piece of both rows.
KVASIR_SIMD_FN Bytes everywhere(const void* p) {
  return {_mm512_maskz_broadcast_i32x4(kAllLanes, _mm_loadu_si128(static_cast<const __m128i*>(p)))};
}
/// The pieces at p, for both rows: for_both_rows() piece by piece (it reads 64 bytes), twice() row by row.
KVASIR_SIMD_FN Bytes for_both_rows(const void* p) {
  const __m512i x = _mm512_loadu_si512(p);
  return {_mm512_maskz_shuffle_i32x4(kAllLanes, x, x, 0x50)};
}
KVASIR_SIMD_FN Bytes twice(const void* p) {
  return {_mm512_maskz_broadcast_i64x4(0xff, _mm256_loadu_si256(static_cast<const __m256i*>(p)))};
}
/// The 16 bytes at a and at b, for every piece of rows r and r + 4.
KVASIR_SIMD_FN Bytes everywhere(const std::byte* a, const std::byte* b) {
  return {_mm512_maskz_broadcast_i64x4(0xff, _mm256_set_m128i(load16(b), load16(a)))};
}
/// Byte j of each piece becomes its byte index[j].
KVASIR_SIMD_FN Bytes shuffle_pieces(Bytes x, Bytes index) { return {_mm512_shuffle_epi8(x.v, index.v)}; }
/// kValue in each byte where x has one of the bits, else 0.
template <int kValue>
KVASIR_SIMD_FN Bytes where(Bytes x, Bytes bits) {
  return {_mm512_maskz_set1_epi8(_mm512_test_epi8_mask(x.v, bits.v), kValue)};
}

// A constant permutation that picks 16-bit words from two registers.
struct alignas(64) Pick {
  uint16_t at[32];
  KVASIR_SIMD_MEMBER __m512i v() const { return _mm512_load_si512(at); }
};
// The form of the permutation that overwrites a copy of its index. g++ chooses the other form and reloads its sources.
KVASIR_SIMD_FN __m512i permute(__m512i a, __m512i index, __m512i b) {
  asm("vpermi2w %2, %1, %0" : "+v"(index) : "v"(a), "v"(b));
  return index;
}
// 64 bytes at p. If not kWhole, reads only the words within the first `bytes` bytes; the others are 0.
template <bool kWhole>
KVASIR_SIMD_FN __m512i load_words(const std::byte* p, int bytes) {
  if constexpr (kWhole) return _mm512_loadu_si512(p);
  const int words = bytes < 0 ? 0 : bytes < 64 ? bytes / 2 : 32;
  return _mm512_maskz_loadu_epi16(static_cast<__mmask32>((uint64_t{1} << words) - 1), p);
}
// Offset of a window of 64 bytes that covers `bytes` bytes from `begin` on and does not go past four blocks of kStep
// bytes.
template <int kStep>
static constexpr int window(int begin, int bytes) {
  const int from = begin + (bytes > 64 ? bytes - 64 : 0);
  return from < 4 * kStep - 64 ? from : 4 * kStep - 64;
}

template <int kStep, int kFrom, int kBlock, int kWindow>
static constexpr Pick kPickPieces = [] {
  Pick out{};
  for (int l = 0; l < 4; ++l)
    for (int j = 0; j < 8; ++j)
      out.at[8 * l + j] = static_cast<uint16_t>((kStep * (kBlock + l / 2) + kFrom - kWindow) / 2 + j + l % 2 * 32);
  return out;
}();
/// The 16 bytes at kFrom of blocks kBlock and kBlock + 1, of the rows at a and b. Blocks have kStep bytes, and `n` of
/// them exist.
template <int kStep, int kFrom, int kBlock, bool kWhole>
KVASIR_SIMD_FN Bytes pieces(const std::byte* a, const std::byte* b, int n) {
  constexpr int kWindow = window<kStep>(kBlock * kStep, kFrom + kStep + 16);
  return {permute(load_words<kWhole>(a + kWindow, n * kStep - kWindow), kPickPieces<kStep, kFrom, kBlock, kWindow>.v(),
                  load_words<kWhole>(b + kWindow, n * kStep - kWindow))};
}
/// The same for blocks of any length.
template <int kStep, int kFrom, int kBlock, bool kWhole>
KVASIR_SIMD_FN Bytes odd_pieces(const std::byte* a, const std::byte* b, int n) {
  const auto load16 = [](const std::byte* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); };
  const int first = kBlock * kStep + kFrom, second = kWhole || kBlock + 1 < n ? first + kStep : first;
  const __m256i one = _mm256_inserti128_si256(_mm256_castsi128_si256(load16(a + first)), load16(b + first), 1),
                other = _mm256_inserti128_si256(_mm256_castsi128_si256(load16(a + second)), load16(b + second), 1);
  return {_mm512_maskz_inserti64x4(0xff, _mm512_castsi256_si512(one), other, 1)};
}
/// The first and the last 16 of every 32 of the 64 bytes at a and b.
KVASIR_SIMD_FN void split32(const std::byte* a, const std::byte* b, Bytes* first, Bytes* last) {
  const __m512i x = _mm512_loadu_si512(a), y = _mm512_loadu_si512(b);
  first->v = _mm512_maskz_permutex2var_epi64(0xff, x, _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13), y);
  last->v = _mm512_maskz_permutex2var_epi64(0xff, x, _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15), y);
}
/// Two pieces each at a and b, row by row.
KVASIR_SIMD_FN Bytes consecutive(const std::byte* a, const std::byte* b) {
  const auto load32 = [](const std::byte* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); };
  return {_mm512_maskz_inserti64x4(0xff, _mm512_castsi256_si512(load32(a)), load32(b), 1)};
}
/// Bits 2q and 2q + 1 of every byte, moved to bits kTo and kTo + 1.
template <int q, int kTo>
KVASIR_SIMD_FN Bytes bit_pair(Bytes x) {
  constexpr bool kLeft = kTo > 2 * q;
  constexpr unsigned kBy = kLeft ? kTo - 2 * q : 2 * q - kTo;
  return Bytes{kLeft ? _mm512_maskz_slli_epi16(~__mmask32{0}, x.v, kBy)
                     : _mm512_maskz_srli_epi16(~__mmask32{0}, x.v, kBy)} &
         set1_bytes(3 << kTo);
}

// ---- products: unsigned weights of kBits bits, signed activations; weights of 8 bits in as_weights()'s form ------

/// Sums of products in each lane, not yet added to one sum.
template <int kBits>
struct Products {
  __m512i v;
};
template <int kBits>
KVASIR_SIMD_FN Products<kBits> no_products() {
  return {_mm512_setzero_si512()};
}

#ifdef __AVX512VNNI__
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
  if constexpr (kHalfWords<kBits>) return {_mm512_add_epi16(sum.v, _mm512_maddubs_epi16(w.v, x.v))};
  return {add_quads<kBits == 8>(sum.v, w.v, x.v)};
}
template <int kBits>
KVASIR_SIMD_FN __m512i as_words(Products<kBits> x) {
  if constexpr (kHalfWords<kBits>) return _mm512_madd_epi16(x.v, _mm512_set1_epi16(1));
  return x.v;
}

/// From registers of rows 0 and 4, 1 and 5, 2 and 6, 3 and 7: each row's sums of products, in the order of rows.
template <int kBits>
KVASIR_SIMD_FN Words sum_rows(const Products<kBits>* rows) {
  const __m512i a = as_words(rows[0]), b = as_words(rows[1]), c = as_words(rows[2]), d = as_words(rows[3]);
  const __m512i ab = _mm512_add_epi32(_mm512_maskz_unpacklo_epi32(kAllLanes, a, b),
                                      _mm512_maskz_unpackhi_epi32(kAllLanes, a, b)),
                cd = _mm512_add_epi32(_mm512_maskz_unpacklo_epi32(kAllLanes, c, d),
                                      _mm512_maskz_unpackhi_epi32(kAllLanes, c, d));
  return {_mm512_add_epi32(_mm512_maskz_unpacklo_epi64(0xff, ab, cd), _mm512_maskz_unpackhi_epi64(0xff, ab, cd))};
}

KVASIR_SIMD_FN Words operator+(Words a, Words b) { return {_mm512_add_epi32(a.v, b.v)}; }
KVASIR_SIMD_FN Words operator-(Words a, Words b) { return {_mm512_sub_epi32(a.v, b.v)}; }
template <int kBy>
KVASIR_SIMD_FN Words shift_left(Words x) {
  return {_mm512_maskz_slli_epi32(kAllLanes, x.v, kBy)};
}
KVASIR_SIMD_FN Words operator*(Words a, Words b) { return {_mm512_mullo_epi32(a.v, b.v)}; }
KVASIR_SIMD_FN Floats to_float(Words x) { return {_mm512_maskz_cvtepi32_ps(kAllLanes, x.v)}; }
KVASIR_SIMD_FN Floats operator-(Floats a, Floats b) { return {_mm512_sub_ps(a.v, b.v)}; }
KVASIR_SIMD_FN Floats operator*(Floats a, Floats b) { return {_mm512_mul_ps(a.v, b.v)}; }
KVASIR_SIMD_FN Floats set1_floats(float x) { return {_mm512_set1_ps(x)}; }
KVASIR_SIMD_FN Floats load_floats(const float* p) { return {_mm512_loadu_ps(p)}; }
KVASIR_SIMD_FN void store(float* p, Floats x) { _mm512_storeu_ps(p, x.v); }
/// Adds a's two pieces, then b's two, both given row by row. The results are the pieces of one register, piece by
/// piece.
KVASIR_SIMD_FN Words add_pieces(Words a, Words b) {
  return {_mm512_add_epi32(_mm512_maskz_shuffle_i32x4(kAllLanes, a.v, b.v, 0x88),
                           _mm512_maskz_shuffle_i32x4(kAllLanes, a.v, b.v, 0xdd))};
}
/// p[i] for piece i of every row. Reads four values.
KVASIR_SIMD_FN Floats each_piece(const float* p) {
  const __m512i index = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
  return {_mm512_maskz_permutexvar_ps(kAllLanes, index, _mm512_castps128_ps512(_mm_loadu_ps(p)))};
}
KVASIR_SIMD_FN Words each_piece_at(const int32_t* p, __m512i index) {
  const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return {_mm512_maskz_permutexvar_epi32(kAllLanes, index, _mm512_castsi128_si512(x))};
}
KVASIR_SIMD_FN Words each_piece(const int32_t* p) {
  return each_piece_at(p, _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1));
}
/// The same if pieces are stored row by row.
KVASIR_SIMD_FN Words each_piece_by_row(const int32_t* p) {
  return each_piece_at(p, _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1));
}
KVASIR_SIMD_FN Floats for_all_pieces(RowFloats x) { return {_mm512_maskz_broadcast_f32x8(kAllLanes, x.v)}; }
/// Bytes 2i and 2i + 1 of each row, as the two pieces of a register: unsigned_floats() piece by piece, signed_words()
/// row by row.
template <int i>
KVASIR_SIMD_FN Floats unsigned_floats(RowBytes x) {
  return to_float(Words{_mm512_maskz_cvtepu8_epi32(kAllLanes, half_of<i>(by_byte(x)))});
}
template <int i>
KVASIR_SIMD_FN Words signed_words(RowBytes x) {
  return {_mm512_maskz_cvtepi8_epi32(kAllLanes, half_of<i>(_mm256_permute4x64_epi64(x.v, 0xd8)))};
}

KVASIR_SIMD_FN __m256i low_half(__m512i x) {
  return _mm256_castpd_si256(_mm512_maskz_extractf64x4_pd(0xff, _mm512_castsi512_pd(x), 0));
}
KVASIR_SIMD_FN __m256i high_half(__m512i x) { return _mm512_maskz_extracti64x4_epi64(0xff, x, 1); }
KVASIR_SIMD_FN Floats widen(__m256i halves) { return {_mm512_maskz_cvtph_ps(kAllLanes, halves)}; }
// Word 8 b + 4 h + r is the f16 of block kBlock + b of row r + 4 h, which is in source h.
template <int kStep, int kFrom, int kBlock, int r, int kWindow>
static constexpr Pick kPickHalves = [] {
  Pick out{};
  for (int i = 0; i < 8; ++i)
    out.at[4 * i + r] = static_cast<uint16_t>((kStep * (kBlock + i / 2) + kFrom - kWindow) / 2 + i % 2 * 32);
  return out;
}();
template <int kStep, int kFrom, int kBlock, int kWindow, int r, bool kWhole>
KVASIR_SIMD_FN __m512i pick_halves(const Blocks& rows, int n) {
  return permute(load_words<kWhole>(rows.row(r) + kWindow, n * kStep - kWindow),
                 kPickHalves<kStep, kFrom, kBlock, r, kWindow>.v(),
                 load_words<kWhole>(rows.row(r + 4) + kWindow, n * kStep - kWindow));
}
template <int kStep, int kFrom, int kBlock, int kWindow, bool kWhole>
KVASIR_SIMD_FN __m512i halves_from(const Blocks& rows, int n) {
  const __m512i a = pick_halves<kStep, kFrom, kBlock, kWindow, 0, kWhole>(rows, n),
                b = pick_halves<kStep, kFrom, kBlock, kWindow, 1, kWhole>(rows, n),
                c = pick_halves<kStep, kFrom, kBlock, kWindow, 2, kWhole>(rows, n),
                d = pick_halves<kStep, kFrom, kBlock, kWindow, 3, kWhole>(rows, n);
  return _mm512_mask_blend_epi16(0xcccccccc, _mm512_mask_blend_epi16(0x22222222, a, b),
                                 _mm512_mask_blend_epi16(0x88888888, c, d));
}
/// The f16 at kFrom of the rows' blocks, of which n exist.
template <int kStep, int kFrom, bool kWhole>
KVASIR_SIMD_FN void block_halves(const Blocks& rows, int n, Floats* out) {
  if constexpr (kFrom + 3 * kStep + 2 <= 64) {
    const __m512i all = halves_from<kStep, kFrom, 0, 0, kWhole>(rows, n);
    out[0] = widen(low_half(all));
    out[1] = widen(high_half(all));
  } else {
    constexpr int kSecond = window<kStep>(2 * kStep, 0);
    out[0] = widen(low_half(halves_from<kStep, kFrom, 0, 0, kWhole>(rows, n)));
    out[1] = widen(low_half(halves_from<kStep, kFrom, 2, kSecond, kWhole>(rows, n)));
  }
}

}  // namespace KVASIR_SIMD_NS
