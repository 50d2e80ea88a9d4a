// The kernels of integer weights for AVX2 with AVX-VNNI.
#if defined(__x86_64__)

#define KVASIR_SIMD_NS kvasir::avx2_vnni
#include "math/simd/lanes_avx2.h"

namespace KVASIR_SIMD_NS {
constexpr int kIntegerTokens = 4, kIntegerTokensWide = 4, kIntegerVectors = 1;
}  // namespace KVASIR_SIMD_NS

#include "math/simd/encode_act_x86.h"
#include "math/simd/kernels_integer_simd.h"

namespace kvasir {
const IntegerKernels kAvx2VnniIntegers = avx2_vnni::make_integer_kernels();
}

#endif
