// How stored blocks of integer weights become bytes and scales; one struct per type. A granule is kRows rows of four
// blocks of 32 weights, or of one block of 256. Its parts are 32 weights each; a piece is the first or the last 16
// weights of a part. kernels_few_simd.h computes the products.
// Source of the stored layouts: ggml-org/ggml, ggml-common.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "math/simd/numbers16.h"
#include "math/simd/vec16_common.h"

namespace KVASIR_SIMD_NS {
namespace {

// Each form has
//   kBytes: bytes of a row's granule; kParts: its parts;
//   kBits: bits of a weight (weights of 8 bits are signed); kMid: subtracted from each stored weight;
//   kOffsets: a weight is scale * w + offset;
//   kFactors: each piece has an integer factor, and a register's pieces are stored row by row;
//   kOffsetFactors: each piece has an integer factor of its offset too;
//   kSteps: each step unpacks kRegisters registers of a pair of rows, which give kSums registers of sums;
//   piece(part, half): index of the piece among the granule's, counted through steps and registers;
//   position(part): index of its sum, counted the same way;
//   unpack<step>(a, b, n, w): writes a step's registers of the rows r and r + 4 at a and b, of which n blocks exist;
//   scales(rows, n, out): writes scales and offsets at the parts' positions.

template <class Form>
constexpr bool kOfBlocks = Form::kParts == 4;  // a granule is up to four blocks, not one
template <class Form>
constexpr int kPositions = Form::kParts / kPieces;  // registers that hold one value per part and row

/// Scales and offsets of the parts of all rows.
template <class Form>
struct GranuleScales {
  Floats scale[kPositions<Form>], offset[Form::kOffsets ? kPositions<Form> : 1];
};

// ---- four blocks of 32 ------------------------------------------------------------------------------------------

template <class Form, int kStep>
struct BlocksOf32 {
  static constexpr int kBytes = 4 * kStep, kParts = 4;
  static constexpr bool kFactors = false, kOffsetFactors = false;
  static constexpr int kSteps = 4 / kPieces, kRegisters = 2, kSums = 1;
  static constexpr int piece(int part, int half) {
    return (part / kPieces * kRegisters + half) * kPieces + part % kPieces;
  }
  static constexpr int position(int part) { return part; }

  template <bool kWhole>
  static KVASIR_SIMD_MEMBER void scales(const Blocks& rows, int n, GranuleScales<Form>& out) {
    block_halves<kStep, 0, kWhole>(rows, n, out.scale);
    if constexpr (Form::kOffsets) block_halves<kStep, 2, kWhole>(rows, n, out.offset);
  }
};

struct FormQ8_0 : BlocksOf32<FormQ8_0, 34> {
  static constexpr int kBits = 8, kMid = 0;
  static constexpr bool kOffsets = false;
  template <int kAt, bool kWhole>
  static KVASIR_SIMD_MEMBER void unpack(const std::byte* a, const std::byte* b, int n, Bytes* w) {
    w[0] = as_weights(pieces<34, 2, kAt * kPieces, kWhole>(a, b, n));
    w[1] = as_weights(pieces<34, 18, kAt * kPieces, kWhole>(a, b, n));
  }
};

alignas(16) constexpr uint8_t kFirstBitOf[16] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1},
                              kLastBitOf[16] = {2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3},
                              kBitAt[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};

// Nibbles, the low ones first. With five bits per weight, the fifth bits of all 32 weights come before them.
template <class Form, int kStep, int kStored, int kFrom>
struct NibbleBlocks : BlocksOf32<Form, kStep> {
  static constexpr int kBits = kStored;
  template <int kAt, bool kWhole>
  static KVASIR_SIMD_MEMBER void unpack(const std::byte* a, const std::byte* b, int n, Bytes* w) {
    constexpr int kBlock = kAt * kPieces, kNibbles = kFrom + (kBits == 5 ? 4 : 0);
    const Bytes packed = pieces<kStep, kNibbles, kBlock, kWhole>(a, b, n);
    w[0] = low4(packed);
    w[1] = high4(packed);
    if constexpr (kBits == 5) {
      const Bytes fifths = pieces<kStep, kFrom, kBlock, kWhole>(a, b, n), bit = everywhere(kBitAt);
      w[0] = w[0] | where<16>(shuffle_pieces(fifths, everywhere(kFirstBitOf)), bit);
      w[1] = w[1] | where<16>(shuffle_pieces(fifths, everywhere(kLastBitOf)), bit);
    }
  }
};

struct FormQ4_0 : NibbleBlocks<FormQ4_0, 18, 4, 2> {
  static constexpr int kMid = 8;
  static constexpr bool kOffsets = false;
};
struct FormQ5_0 : NibbleBlocks<FormQ5_0, 22, 5, 2> {
  static constexpr int kMid = 16;
  static constexpr bool kOffsets = false;
};
struct FormQ4_1 : NibbleBlocks<FormQ4_1, 20, 4, 4> {
  static constexpr int kMid = 0;
  static constexpr bool kOffsets = true;
};
struct FormQ5_1 : NibbleBlocks<FormQ5_1, 24, 5, 4> {
  static constexpr int kMid = 0;
  static constexpr bool kOffsets = true;
};

struct FormMxfp4 : BlocksOf32<FormMxfp4, 17> {
  static constexpr int kBits = 5, kMid = 16;
  static constexpr bool kOffsets = false;
  template <int kAt, bool kWhole>
  static KVASIR_SIMD_MEMBER void unpack(const std::byte* a, const std::byte* b, int n, Bytes* w) {
    const Bytes packed = odd_pieces<17, 1, kAt * kPieces, kWhole>(a, b, n), table = everywhere(kMxfp4Numbers);
    w[0] = shuffle_pieces(table, low4(packed));
    w[1] = shuffle_pieces(table, high4(packed));
  }
  template <bool kWhole>
  static KVASIR_SIMD_MEMBER void scales(const Blocks& rows, int n, GranuleScales<FormMxfp4>& out) {
    float powers[4 * kRows] = {};
    KVASIR_UNROLL
    for (int b = 0; b < 4; ++b)
      if (kWhole || b < n) KVASIR_UNROLL
    for (int r = 0; r < kRows; ++r) powers[b * kRows + r] = half_power(rows.row(r) + b * 17);
    KVASIR_UNROLL
    for (int i = 0; i < kPositions<FormMxfp4>; ++i) out.scale[i] = load_floats(powers + i * kPieces * kRows);
  }
};

struct FormIq4Nl : BlocksOf32<FormIq4Nl, 18> {
  static constexpr int kBits = 8, kMid = 0;
  static constexpr bool kOffsets = false;
  template <int kAt, bool kWhole>
  static KVASIR_SIMD_MEMBER void unpack(const std::byte* a, const std::byte* b, int n, Bytes* w) {
    const Bytes packed = pieces<18, 2, kAt * kPieces, kWhole>(a, b, n), table = everywhere(kIq4NlNumbers);
    w[0] = as_weights(shuffle_pieces(table, low4(packed)));
    w[1] = as_weights(shuffle_pieces(table, high4(packed)));
  }
};

// ---- one block of 256 -------------------------------------------------------------------------------------------

// 32 bytes hold two parts, an even one and an odd one; a step takes kPieces times 32 bytes.
struct PairsOfParts {
  static constexpr int kParts = 8;
  static constexpr int kSteps = 4 / kPieces, kRegisters = 4, kSums = 2;
  static constexpr int piece(int part, int half) {
    const int pair = part / 2;
    return (pair / kPieces * kRegisters + part % 2 * 2 + half) * kPieces + pair % kPieces;
  }
  static constexpr int position(int part) {
    const int pair = part / 2;
    return (pair / kPieces * kSums + part % 2) * kPieces + pair % kPieces;
  }
};

// q4_k and q5_k: d, dmin, 12 bytes with 8 scales and 8 minimums of 6 bits, for q5_k 32 bytes of fifth bits, then 128
// bytes of nibbles, the even parts in the low ones.
template <int kStored>
struct FormAffineK : PairsOfParts {
  static constexpr int kNibbles = kStored == 4 ? 16 : 48, kBytes = kNibbles + 128;
  static constexpr int kBits = kStored, kMid = 0;
  static constexpr bool kOffsets = true, kFactors = false, kOffsetFactors = false;
  template <int kAt, bool>
  static KVASIR_SIMD_MEMBER void unpack(const std::byte* a, const std::byte* b, int, Bytes* w) {
    constexpr int kFrom = kNibbles + kAt * kPieces * 32;
    Bytes first, last;
    split32(a + kFrom, b + kFrom, &first, &last);
    w[0] = low4(first);
    w[1] = low4(last);
    w[2] = high4(first);
    w[3] = high4(last);
    if constexpr (kBits == 5) {
      const Bytes first_fifths = everywhere(a + 16, b + 16), last_fifths = everywhere(a + 32, b + 32),
                  even = for_both_rows(kBitOfPart[0] + 16 * kPieces * kAt),
                  odd = for_both_rows(kBitOfPart[1] + 16 * kPieces * kAt);
      w[0] = w[0] | where<16>(first_fifths, even);
      w[1] = w[1] | where<16>(last_fifths, even);
      w[2] = w[2] | where<16>(first_fifths, odd);
      w[3] = w[3] | where<16>(last_fifths, odd);
    }
  }

  template <bool>
  static KVASIR_SIMD_MEMBER void scales(const Blocks& rows, int, GranuleScales<FormAffineK>& out) {
    RowBytes head[4];
    transpose16(rows, 0, head);
    const RowBytes six = all_bytes(63), four = all_bytes(15), two = all_bytes(48);
    const RowBytes s0 = head[1] & six, m0 = head[2] & six, s4 = (head[3] & four) | (shift_right<2>(head[1]) & two),
                   m4 = (shift_right<4>(head[3]) & four) | (shift_right<2>(head[2]) & two);
    RowFloats d, less;
    two_halves(head[0], &d, &less);
    put<0>(d, pick<0, 2, 0, 2>(s0, s4), out.scale);
    put<1>(d, pick<1, 3, 1, 3>(s0, s4), out.scale);
    put<0>(negate(less), pick<0, 2, 0, 2>(m0, m4), out.offset);
    put<1>(negate(less), pick<1, 3, 1, 3>(m0, m4), out.offset);
  }

 private:
  // Bit 2 i + odd, in every byte of piece i. The table has four pieces, since a load for two pieces reads four.
  struct BitTable {
    uint8_t at[2][96];
    constexpr const uint8_t* operator[](int odd) const { return at[odd]; }
  };
  static constexpr BitTable kBitOfPart = [] {
    BitTable out{};
    for (int odd = 0; odd < 2; ++odd)
      for (int i = 0; i < 64; ++i) out.at[odd][i] = static_cast<uint8_t>(1 << (i / 16 * 2 + odd));
    return out;
  }();
  // Writes the values of parts odd, odd + 2, odd + 4 and odd + 6, in units of `unit`.
  template <int odd>
  static KVASIR_SIMD_MEMBER void put(RowFloats unit, RowBytes x, Floats* out) {
    const Floats units = for_all_pieces(unit);
    out[odd] = units * unsigned_floats<0>(x);
    out[2 + odd] = units * unsigned_floats<1>(x);
    if constexpr (kPieces == 1) {
      out[4 + odd] = units * unsigned_floats<2>(x);
      out[6 + odd] = units * unsigned_floats<3>(x);
    }
  }
};

// iq4_xs: d, 16 bits with the high two of 8 scales, 4 bytes with their low four, then 128 bytes of indices. A part has
// 16 bytes, its first half in the low nibbles.
struct FormIq4Xs : PairsOfParts {
  static constexpr int kBytes = 136, kBits = 8, kMid = 0;
  static constexpr bool kOffsets = false, kFactors = false, kOffsetFactors = false;

  template <int kAt, bool>
  static KVASIR_SIMD_MEMBER void unpack(const std::byte* a, const std::byte* b, int, Bytes* w) {
    constexpr int kFrom = 8 + kAt * kPieces * 32;
    Bytes even, odd;
    split32(a + kFrom, b + kFrom, &even, &odd);
    const Bytes table = everywhere(kIq4NlNumbers);
    w[0] = as_weights(shuffle_pieces(table, low4(even)));
    w[1] = as_weights(shuffle_pieces(table, high4(even)));
    w[2] = as_weights(shuffle_pieces(table, low4(odd)));
    w[3] = as_weights(shuffle_pieces(table, high4(odd)));
  }

  template <bool>
  static KVASIR_SIMD_MEMBER void scales(const Blocks& rows, int, GranuleScales<FormIq4Xs>& out) {
    RowBytes head[4];
    transpose16(rows, 0, head);
    const RowBytes four = all_bytes(15), two = all_bytes(48), high = pick<2, 2, 3, 3>(head[0], head[0]);
    // Parts 0, 4, 2, 6 and 1, 5, 3, 7, then in order.
    const RowBytes even = pick<0, 2, 1, 3>(shift_left<4>(high) & two, high & two),
                   odd = pick<0, 2, 1, 3>(shift_left<2>(high) & two, shift_right<2>(high) & two);
    RowFloats d, unused;
    two_halves(head[0], &d, &unused);
    put<0>(d, (head[1] & four) | pick<0, 2, 1, 3>(even, even), out.scale);
    put<1>(d, (shift_right<4>(head[1]) & four) | pick<0, 2, 1, 3>(odd, odd), out.scale);
  }

 private:
  template <int odd>
  static KVASIR_SIMD_MEMBER void put(RowFloats unit, RowBytes x, Floats* out) {
    const Floats units = for_all_pieces(unit), middle = set1_floats(32);
    out[odd] = units * (unsigned_floats<0>(x) - middle);
    out[2 + odd] = units * (unsigned_floats<1>(x) - middle);
    if constexpr (kPieces == 1) {
      out[4 + odd] = units * (unsigned_floats<2>(x) - middle);
      out[6 + odd] = units * (unsigned_floats<3>(x) - middle);
    }
  }
};

// Types with an integer factor for each piece. In each half of the block, a step takes the 32 bytes that hold parts
// 4h + i and 4h + 2 + i, where i is 0 or 1.
struct PartsWithFactors {
  static constexpr int kParts = 8;
  static constexpr bool kFactors = true;
  static constexpr int kSteps = 4, kRegisters = 4 / kPieces, kSums = kRegisters;
  static constexpr int position(int part) { return (part / 4 * 2 + part % 2) * 2 + part / 2 % 2; }
  static constexpr int piece(int part, int half) { return 2 * position(part) + half; }

 protected:
  template <int kCount>
  static KVASIR_SIMD_MEMBER void set_all(Floats (&out)[kCount], RowFloats unit) {
    KVASIR_UNROLL
    for (int i = 0; i < kCount; ++i) out[i] = for_all_pieces(unit);
  }
};

// q6_k: 128 bytes of low nibbles, 64 bytes of pairs of high bits, 16 signed factors of one piece each, d. In each half
// of the block, the low nibbles of 64 bytes are two parts, the high nibbles two more, and 32 bytes hold the high bits
// of all four.
struct FormQ6K : PartsWithFactors {
  static constexpr int kBytes = 210, kBits = 6, kMid = 32;
  static constexpr bool kOffsets = false, kOffsetFactors = false;

  template <int kAt, bool>
  static KVASIR_SIMD_MEMBER void unpack(const std::byte* a, const std::byte* b, int, Bytes* w) {
    constexpr int kHigh = 128 + kAt / 2 * 32, kLow = kAt / 2 * 64 + kAt % 2 * 32;
    KVASIR_UNROLL
    for (int i = 0; i < kRegisters / 2; ++i) {
      const Bytes low = consecutive(a + kLow + 16 * i, b + kLow + 16 * i),
                  high = consecutive(a + kHigh + 16 * i, b + kHigh + 16 * i);
      w[i] = low4(low) | bit_pair<kAt % 2, 4>(high);
      w[i + kRegisters / 2] = high4(low) | bit_pair<kAt % 2 + 2, 4>(high);
    }
  }
  /// out[i] receives bytes 4i..4i+3: the factors of the pieces of parts 2i and 2i + 1.
  static KVASIR_SIMD_MEMBER void factors(const Blocks& rows, RowBytes* out) { transpose16(rows, 192, out); }
  template <bool>
  static KVASIR_SIMD_MEMBER void scales(const Blocks& rows, int, GranuleScales<FormQ6K>& out) {
    set_all(out.scale, row_halves(rows, 208));
  }
};

// q3_k: 32 bytes with a third bit of each part, 64 bytes of pairs of low bits, 12 bytes with 16 factors of 6 bits, d.
struct FormQ3K : PartsWithFactors {
  static constexpr int kBytes = 110, kBits = 3, kMid = 4;
  static constexpr bool kOffsets = false, kOffsetFactors = false;

  template <int kAt, bool>
  static KVASIR_SIMD_MEMBER void unpack(const std::byte* a, const std::byte* b, int, Bytes* w) {
    constexpr int kLow = 32 + kAt / 2 * 32, kPart = kAt / 2 * 4 + kAt % 2;
    KVASIR_UNROLL
    for (int i = 0; i < kRegisters / 2; ++i) {
      const Bytes low = consecutive(a + kLow + 16 * i, b + kLow + 16 * i), third = consecutive(a + 16 * i, b + 16 * i);
      w[i] = bit_pair<kAt % 2, 0>(low) | where<4>(third, set1_bytes(1 << kPart));
      w[i + kRegisters / 2] = bit_pair<kAt % 2 + 2, 0>(low) | where<4>(third, set1_bytes(4 << kPart));
    }
  }
  // The low four bits of factors 0 to 7 are in 8 bytes, of 8 to 15 in their high nibbles; the high two bits follow.
  static KVASIR_SIMD_MEMBER void factors(const Blocks& rows, RowBytes* out) {
    RowBytes last[4];
    transpose16(rows, kBytes - 16, last);  // two bytes more than wanted: it must not read past the block
    const RowBytes four = all_bytes(15), two = all_bytes(48), middle = all_bytes(32),
                   a = pick<2, 3, 0, 1>(last[0], last[1]), b = pick<2, 3, 0, 1>(last[1], last[2]),
                   high = pick<2, 3, 0, 1>(last[2], last[3]);
    out[0] = ((a & four) | (shift_left<4>(high) & two)) - middle;
    out[1] = ((b & four) | (shift_left<2>(high) & two)) - middle;
    out[2] = ((shift_right<4>(a) & four) | (high & two)) - middle;
    out[3] = ((shift_right<4>(b) & four) | (shift_right<2>(high) & two)) - middle;
  }
  template <bool>
  static KVASIR_SIMD_MEMBER void scales(const Blocks& rows, int, GranuleScales<FormQ3K>& out) {
    set_all(out.scale, row_halves(rows, 108));
  }
};

// q2_k: 16 bytes with a factor and an offset's factor of 4 bits for each piece, 64 bytes of pairs of bits, d, dmin.
struct FormQ2K : PartsWithFactors {
  static constexpr int kBytes = 84, kBits = 2, kMid = 0;
  static constexpr bool kOffsets = true, kOffsetFactors = true;

  template <int kAt, bool>
  static KVASIR_SIMD_MEMBER void unpack(const std::byte* a, const std::byte* b, int, Bytes* w) {
    constexpr int kLow = 16 + kAt / 2 * 32;
    KVASIR_UNROLL
    for (int i = 0; i < kRegisters / 2; ++i) {
      const Bytes low = consecutive(a + kLow + 16 * i, b + kLow + 16 * i);
      w[i] = bit_pair<kAt % 2, 0>(low);
      w[i + kRegisters / 2] = bit_pair<kAt % 2 + 2, 0>(low);
    }
  }
  static KVASIR_SIMD_MEMBER void factors(const Blocks& rows, RowBytes* out) {
    RowBytes head[4];
    transpose16(rows, 0, head);
    KVASIR_UNROLL
    for (int i = 0; i < 4; ++i) out[i] = head[i] & all_bytes(15);
  }
  static KVASIR_SIMD_MEMBER void offset_factors(const Blocks& rows, RowBytes* out) {
    RowBytes head[4];
    transpose16(rows, 0, head);
    KVASIR_UNROLL
    for (int i = 0; i < 4; ++i) out[i] = shift_right<4>(head[i]) & all_bytes(15);
  }
  template <bool>
  static KVASIR_SIMD_MEMBER void scales(const Blocks& rows, int, GranuleScales<FormQ2K>& out) {
    set_all(out.scale, row_halves(rows, 80));
    set_all(out.offset, negate(row_halves(rows, 82)));
  }
};

}  // namespace
}  // namespace KVASIR_SIMD_NS
