// How the kernels of kernels_integer_simd.h read 16 stored blocks of integer weights, one block of each row: the
// integers of a part of 32 in element order, and the rows' scales. One struct per type.
// Source of the stored layouts: ggml-org/ggml, ggml-common.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "math/simd/numbers16.h"
#include "math/simd/vec16_common.h"

namespace KVASIR_SIMD_NS {
namespace {

constexpr int kMaxParts = 8;  // in a stored block

/// Scales of the parts of 16 rows. An element is scale * w + offset; or, with kHalves, scale * factors[0] * w in the
/// first half of the part and scale * factors[1] * w in the second; with kOffsets too, offset * offset_factors[i] is
/// added.
struct Scales {
  float scale[kMaxParts][16], offset[kMaxParts][16];
  int32_t factors[kMaxParts][2][16], offset_factors[kMaxParts][2][16];
};

/// The word at byte `at` of each block, in its row's lane.
inline I16 words(const Blocks& blocks, int at) {
  int32_t w[16];
  KVASIR_UNROLL
  for (int r = 0; r < 16; ++r) std::memcpy(w + r, blocks.row(r) + at, sizeof *w);
  return load_i(w);
}

// Each type has: kBytes of a block, its kParts; kBits of an integer, kMid to subtract from it; kSigned: integers are
// signed bytes; kOffsets and kHalves: which members of Scales it uses.

struct RowsQ8_0 {
  static constexpr int kBytes = 34, kParts = 1, kMid = 0, kBits = 8;
  static constexpr bool kSigned = true, kOffsets = false, kHalves = false;
  static inline B32 load(const std::byte* block, int) { return load_b32(block + 2); }
  static inline void scales(const Blocks& blocks, Scales& s) { store(s.scale[0], halves(blocks, 0)); }
};

// Reads 16 bytes of nibbles; with five bits, the fifth bits of all 32 integers come before them.
template <int kBits>
inline B32 load_small(const std::byte* packed) {
  if constexpr (kBits == 4) return load_nibbles(packed);
  uint32_t fifths;
  std::memcpy(&fifths, packed, sizeof fifths);
  return load_nibbles(packed + sizeof fifths) | spread_at4(fifths);
}

// q4_0, q5_0
template <int kStored>
struct RowsCentered {
  static constexpr int kBits = kStored;
  static constexpr int kBytes = kBits == 4 ? 18 : 22, kParts = 1, kMid = 1 << (kBits - 1);
  static constexpr bool kSigned = false, kOffsets = false, kHalves = false;
  static inline B32 load(const std::byte* block, int) { return load_small<kBits>(block + 2); }
  static inline void scales(const Blocks& blocks, Scales& s) { store(s.scale[0], halves(blocks, 0)); }
};

// q4_1, q5_1
template <int kStored>
struct RowsRanged {
  static constexpr int kBits = kStored;
  static constexpr int kBytes = kBits == 4 ? 20 : 24, kParts = 1, kMid = 0;
  static constexpr bool kSigned = false, kOffsets = true, kHalves = false;
  static inline B32 load(const std::byte* block, int) { return load_small<kBits>(block + 4); }
  static inline void scales(const Blocks& blocks, Scales& s) {
    store(s.scale[0], halves(blocks, 0));
    store(s.offset[0], halves(blocks, 2));
  }
};

// Types whose nibbles are indices into a table (numbers16.h).
struct RowsMxfp4 {
  static constexpr int kBytes = 17, kParts = 1, kMid = 16, kBits = 5;
  static constexpr bool kSigned = false, kOffsets = false, kHalves = false;
  static inline B32 load(const std::byte* block, int) { return look_up(kMxfp4Numbers, load_nibbles(block + 1)); }
  static inline void scales(const Blocks& blocks, Scales& s) {
    KVASIR_UNROLL
    for (int r = 0; r < 16; ++r) s.scale[0][r] = half_power(blocks.row(r));
  }
};
struct RowsIq4Nl {
  static constexpr int kBytes = 18, kParts = 1, kMid = 0, kBits = 8;
  static constexpr bool kSigned = true, kOffsets = false, kHalves = false;
  static inline B32 load(const std::byte* block, int) { return look_up(kIq4NlNumbers, load_nibbles(block + 2)); }
  static inline void scales(const Blocks& blocks, Scales& s) { store(s.scale[0], halves(blocks, 0)); }
};

// q4_k and q5_k: d, dmin, 12 bytes with 8 scales and 8 minimums of 6 bits, for q5_k 32 bytes of fifth bits, then 128
// bytes of nibbles, two parts in each 32.
template <int kStored>
struct RowsAffineK {
  static constexpr int kBits = kStored;
  static constexpr int kNibbles = kBits == 4 ? 16 : 48, kBytes = kNibbles + 128, kParts = 8, kMid = 0;
  static constexpr bool kSigned = false, kOffsets = true, kHalves = false;
  static inline B32 load(const std::byte* block, int part) {
    const B32 packed = load_b32(block + kNibbles + part / 2 * 32), w = part % 2 == 0 ? low4(packed) : high4(packed);
    if constexpr (kBits == 4) return w;
    return w | bits_of<4>(load_b32(block + 16), part, 1);
  }
  static inline void scales(const Blocks& blocks, Scales& s) {
    const V16 d = halves(blocks, 0), dmin = halves(blocks, 2);
    const I16 w[3] = {words(blocks, 4), words(blocks, 8), words(blocks, 12)};
    KVASIR_UNROLL
    for (int p = 0; p < 4; ++p) {
      const int at = 8 * p;
      put(s, p, d, dmin, bits(w[0], at, 63), bits(w[1], at, 63));
      put(s, p + 4, d, dmin, bits(w[2], at, 15) | shift_left(bits(w[0], at + 6, 3), 4),
          bits(w[2], at + 4, 15) | shift_left(bits(w[1], at + 6, 3), 4));
    }
  }

 private:
  static inline I16 bits(I16 x, int from, int mask) { return shift_right(x, from) & set1_i(mask); }
  static inline void put(Scales& s, int part, V16 d, V16 dmin, I16 scale, I16 minimum) {
    store(s.scale[part], d * to_float(scale));
    store(s.offset[part], negate(dmin * to_float(minimum)));
  }
};

// q6_k: 128 bytes of low nibbles, 64 bytes of pairs of high bits, 16 signed scales of 16 elements each, d.
struct RowsQ6K {
  static constexpr int kBytes = 210, kParts = 8, kMid = 32, kBits = 6;
  static constexpr bool kSigned = false, kOffsets = false, kHalves = true;
  static inline B32 load(const std::byte* block, int part) {
    const int half = part / 4, quarter = part % 4;
    const B32 low = load_b32(block + 64 * half + quarter % 2 * 32), high = load_b32(block + 128 + 32 * half);
    return (quarter < 2 ? low4(low) : high4(low)) | bits_of<4>(high, 2 * quarter, 3);
  }
  static inline void scales(const Blocks& blocks, Scales& s) {
    const V16 d = halves(blocks, 208);
    KVASIR_UNROLL
    for (int i = 0; i < 4; ++i) {
      const I16 four = words(blocks, 192 + 4 * i);  // the scales of two parts
      KVASIR_UNROLL
      for (int j = 0; j < 2; ++j) {
        store(s.scale[2 * i + j], d);
        store_i(s.factors[2 * i + j][0], signed_byte(four, 2 * j));
        store_i(s.factors[2 * i + j][1], signed_byte(four, 2 * j + 1));
      }
    }
  }

 private:
  static inline I16 signed_byte(I16 x, int i) { return shift_right_signed(shift_left(x, 24 - 8 * i), 24); }
};

// q3_k: 32 bytes with a third bit of each part, 64 bytes of pairs of low bits, 12 bytes with 16 scales of 6 bits, d.
struct RowsQ3K {
  static constexpr int kBytes = 110, kParts = 8, kMid = 4, kBits = 3;
  static constexpr bool kSigned = false, kOffsets = false, kHalves = true;
  static inline B32 load(const std::byte* block, int part) {
    return bits_of<0>(load_b32(block + 32 + part / 4 * 32), part % 4 * 2, 3) | bits_of<2>(load_b32(block), part, 1);
  }
  static inline void scales(const Blocks& blocks, Scales& s) {
    const V16 d = halves(blocks, 108);
    const I16 low[2] = {words(blocks, 96), words(blocks, 100)}, high = words(blocks, 104);
    KVASIR_UNROLL
    for (int g = 0; g < 16; ++g) {
      const I16 scale = (shift_right(low[g / 4 % 2], g % 4 * 8 + g / 8 * 4) & set1_i(15)) |
                        shift_left(shift_right(high, g % 4 * 8 + g / 4 * 2) & set1_i(3), 4);
      store(s.scale[g / 2], d);
      store_i(s.factors[g / 2][g % 2], scale - set1_i(32));
    }
  }
};

// q2_k: 16 bytes with a scale and an offset's factor of 4 bits for each half, 64 bytes of pairs of bits, d, dmin.
struct RowsQ2K {
  static constexpr int kBytes = 84, kParts = 8, kMid = 0, kBits = 2;
  static constexpr bool kSigned = false, kOffsets = true, kHalves = true;
  static inline B32 load(const std::byte* block, int part) {
    return bits_of<0>(load_b32(block + 16 + part / 4 * 32), part % 4 * 2, 3);
  }
  static inline void scales(const Blocks& blocks, Scales& s) {
    const V16 d = halves(blocks, 80), offset = negate(halves(blocks, 82));
    KVASIR_UNROLL
    for (int i = 0; i < 4; ++i) {
      const I16 four = words(blocks, 4 * i);
      KVASIR_UNROLL
      for (int g = 0; g < 4; ++g) {
        const int part = 2 * i + g / 2;
        store(s.scale[part], d);
        store(s.offset[part], offset);
        store_i(s.factors[part][g % 2], shift_right(four, 8 * g) & set1_i(15));
        store_i(s.offset_factors[part][g % 2], shift_right(four, 8 * g + 4) & set1_i(15));
      }
    }
  }
};

// iq4_xs: d, 16 bits with the high two of 8 scales, 4 bytes with their low four, then 16 bytes of indices for each
// part.
struct RowsIq4Xs {
  static constexpr int kBytes = 136, kParts = 8, kMid = 0, kBits = 8;
  static constexpr bool kSigned = true, kOffsets = false, kHalves = false;
  static inline B32 load(const std::byte* block, int part) {
    return look_up(kIq4NlNumbers, load_nibbles(block + 8 + 16 * part));
  }
  static inline void scales(const Blocks& blocks, Scales& s) {
    const V16 d = halves(blocks, 0);
    const I16 high = words(blocks, 0), low = words(blocks, 4);
    KVASIR_UNROLL
    for (int part = 0; part < 8; ++part) {
      const I16 scale =
          (shift_right(low, 4 * part) & set1_i(15)) | shift_left(shift_right(high, 16 + 2 * part) & set1_i(3), 4);
      store(s.scale[part], d * to_float(scale - set1_i(32)));
    }
  }
};

}  // namespace
}  // namespace KVASIR_SIMD_NS
