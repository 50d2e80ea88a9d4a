// The kernels of integer weights for NEON with Armv8.2-A's dot product.
#if defined(__aarch64__)

#define KVASIR_SIMD_NS kvasir::neon_dotprod
#include "math/simd/lanes_neon.h"

namespace KVASIR_SIMD_NS {
constexpr int kIntegerTokens = 2, kIntegerTokensWide = 2, kIntegerVectors = 1;
}  // namespace KVASIR_SIMD_NS

#include "math/simd/encode_act_neon.h"
#include "math/simd/kernels_integer_simd.h"

namespace kvasir {
const IntegerKernels kNeonDotprodIntegers = neon_dotprod::make_integer_kernels();
}

#endif
