// The AVX-512 table. V16 is one of 32 registers.
#if defined(__x86_64__)

#define KVASIR_SIMD_NS kvasir::avx512
#include "math/simd/lanes_avx512.h"

namespace KVASIR_SIMD_NS {
constexpr int kFewRows1 = 8, kFewRows2 = 8, kFewRows3 = 6, kFewRows4 = 6;
constexpr int kTileRows = 4, kTileTokens = 6;
constexpr int kScoreVectors = 2;
constexpr int kDoubleLanes = 8;
constexpr int kIntegerTokens = 8, kIntegerTokensWide = 6, kIntegerVectors = 2;
}  // namespace KVASIR_SIMD_NS

#include "math/simd/encode_act_x86.h"
#include "math/simd/kernels_simd.h"

namespace kvasir {
const Kernels kAvx512Kernels = avx512::make_kernels("avx512");
}

#endif
