// The addresses of the 16 rows of blocks that a kernel of integer weights works on together. No arithmetic here. The
// including file defines KVASIR_SIMD_NS.
#pragma once

#include <cstddef>

#include "math/simd/vec16_common.h"

namespace KVASIR_SIMD_NS {

/// 16 rows, `stride` bytes apart.
struct Blocks {
  const std::byte* base;
  size_t stride;
  KVASIR_SIMD_MEMBER const std::byte* row(int r) const { return base + static_cast<size_t>(r) * stride; }
};

}  // namespace KVASIR_SIMD_NS
