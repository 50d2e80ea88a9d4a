// The NEON table (Armv8-A, 64-bit). V16 is four of the 32 registers, which limits the size of tiles.
#if defined(__aarch64__)

#define KVASIR_SIMD_NS kvasir::neon
#include "math/simd/lanes_neon.h"

namespace KVASIR_SIMD_NS {
constexpr int kFewRows1 = 4, kFewRows2 = 2, kFewRows3 = 1, kFewRows4 = 1;
constexpr int kTileRows = 4, kTileTokens = 6;
constexpr int kScoreVectors = 1;
constexpr int kDoubleLanes = 2;
constexpr int kIntegerTokens = 2, kIntegerTokensWide = 2, kIntegerVectors = 1;
}  // namespace KVASIR_SIMD_NS

#include "math/simd/encode_act_neon.h"
#include "math/simd/kernels_simd.h"

namespace kvasir {
const Kernels kNeonKernels = neon::make_kernels("neon");
}

#endif
