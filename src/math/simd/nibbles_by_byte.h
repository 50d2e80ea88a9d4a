// Nibbles for the CPUs that widen them to bytes, row by row, first (AVX2, NEON). Same API as in int16_avx512.h.
#pragma once

#include "math/simd/blocks16.h"

namespace KVASIR_SIMD_NS {

/// 16 rows of 16 bytes that are nibbles: 32 numbers, the low ones first.
struct Nibbles {
  B32 w[16];

  KVASIR_SIMD_MEMBER Nibbles(const Blocks& blocks, int at) {
    for (int r = 0; r < 16; ++r) w[r] = load_nibbles(blocks.row(r) + at);
  }
  /// lane r: the sum of the 32 products of row r with x.
  KVASIR_SIMD_MEMBER I16 sums(B32 x) const { return row_sums<false>(w, x); }
};

}  // namespace KVASIR_SIMD_NS
