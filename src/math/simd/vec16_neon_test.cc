// vec16_neon.h as a table for vec16_test.cc.
#include "tests/support/vec16_ops.h"

#if defined(__aarch64__)

#define KVASIR_SIMD_NS kvasir::test_neon
#include "math/simd/vec16_neon.h"
#include "tests/support/vec16_ops_impl.h"

namespace kvasir {
const Vec16Ops* vec16_ops_neon() {
  static constexpr Vec16Ops ops = test_neon::make_ops("neon", [] { return true; });
  return &ops;
}
}  // namespace kvasir

#else

const kvasir::Vec16Ops* kvasir::vec16_ops_neon() { return nullptr; }

#endif
