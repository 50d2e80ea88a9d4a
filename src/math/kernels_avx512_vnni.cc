// The kernels of integer weights for AVX-512 with VNNI.
#if defined(__x86_64__)

#define KVASIR_SIMD_NS kvasir::avx512_vnni
#include "math/simd/lanes_avx512.h"

namespace KVASIR_SIMD_NS {
constexpr int kIntegerTokens = 8, kIntegerTokensWide = 6, kIntegerVectors = 2;
}  // namespace KVASIR_SIMD_NS

#include "math/simd/encode_act_x86.h"
#include "math/simd/kernels_integer_simd.h"

namespace kvasir {
const IntegerKernels kAvx512VnniIntegers = avx512_vnni::make_integer_kernels();
}

#endif
