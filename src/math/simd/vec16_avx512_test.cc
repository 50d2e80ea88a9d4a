// vec16_avx512.h as a table for vec16_test.cc. Compiled for its CPU by pragma, so that the test binary starts on any
// CPU.
#include "tests/support/vec16_ops.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace kvasir {
static bool runs_here() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
}  // namespace kvasir

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c,bmi2,avx512f,avx512bw,avx512dq,avx512vl"))), \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c,bmi2,avx512f,avx512bw,avx512dq,avx512vl")
#endif

// A namespace of its own, so that these copies never mix with the library's.
#define KVASIR_SIMD_NS kvasir::test_avx512
#include "math/simd/vec16_avx512.h"
#include "tests/support/vec16_ops_impl.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace kvasir {
const Vec16Ops* vec16_ops_avx512() {
  static constexpr Vec16Ops ops = test_avx512::make_ops("avx512", runs_here);
  return &ops;
}
}  // namespace kvasir

#else

const kvasir::Vec16Ops* kvasir::vec16_ops_avx512() { return nullptr; }

#endif
