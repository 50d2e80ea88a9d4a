// vec16_avx2.h as a table for vec16_test.cc. Compiled for its CPU by pragma, so that the test binary starts on any CPU.
#include "tests/support/vec16_ops.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace kvasir {
static bool runs_here() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
}  // namespace kvasir

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c,bmi2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c,bmi2")
#endif

// A namespace of its own, so that these copies never mix with the library's.
#define KVASIR_SIMD_NS kvasir::test_avx2
#include "math/simd/vec16_avx2.h"
#include "tests/support/vec16_ops_impl.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace kvasir {
const Vec16Ops* vec16_ops_avx2() {
  static constexpr Vec16Ops ops = test_avx2::make_ops("avx2", runs_here);
  return &ops;
}
}  // namespace kvasir

#else

const kvasir::Vec16Ops* kvasir::vec16_ops_avx2() { return nullptr; }

#endif
