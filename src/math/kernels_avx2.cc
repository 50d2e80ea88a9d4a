// The AVX2 table. V16 is two registers of 8 lanes, so a tile's sums are computed for one register's lanes, then the
// other's.
#if defined(__x86_64__)

#define KVASIR_SIMD_NS kvasir::avx2
#include "math/simd/lanes_avx2.h"

namespace KVASIR_SIMD_NS {
constexpr int kFewRows1 = 4, kFewRows2 = 3, kFewRows3 = 2, kFewRows4 = 1;
constexpr int kTileRows = 4, kTileTokens = 3;
constexpr int kScoreVectors = 1;
constexpr int kDoubleLanes = 4;
constexpr int kIntegerTokens = 4, kIntegerTokensWide = 4, kIntegerVectors = 1;
}  // namespace KVASIR_SIMD_NS

#include "math/simd/encode_act_x86.h"
#include "math/simd/kernels_simd.h"

namespace kvasir {
const Kernels kAvx2Kernels = avx2::make_kernels("avx2");
}

#endif
