// The kernel table of each target. A target that only has better byte products shares the other kernels of its base.
#include "math/targets.h"

namespace kvasir {
namespace {

[[maybe_unused]] Kernels with_integers(CpuTarget target, Kernels table, const IntegerKernels& integer) {
  table.name = cpu_target_name(target);
  table.integer = integer;
  return table;
}

}  // namespace

const Kernels& kernels_for(CpuTarget target) {
#if defined(__x86_64__)
  static const Kernels avx2_vnni = with_integers(CpuTarget::avx2_vnni, kAvx2Kernels, kAvx2VnniIntegers);
  static const Kernels avx512_vnni = with_integers(CpuTarget::avx512_vnni, kAvx512Kernels, kAvx512VnniIntegers);
  if (target == CpuTarget::avx2) return kAvx2Kernels;
  if (target == CpuTarget::avx2_vnni) return avx2_vnni;
  if (target == CpuTarget::avx512) return kAvx512Kernels;
  if (target == CpuTarget::avx512_vnni) return avx512_vnni;
#elif defined(__aarch64__)
  static const Kernels dotprod = with_integers(CpuTarget::neon_dotprod, kNeonKernels, kNeonDotprodIntegers);
  if (target == CpuTarget::neon) return kNeonKernels;
  if (target == CpuTarget::neon_dotprod) return dotprod;
#endif
  return kScalarKernels;
}

}  // namespace kvasir
