// The weigh_logits kernel: plain double arithmetic without fma, so that every target and the scalar table give the same
// bits. The including file defines KVASIR_SIMD_NS and kDoubleLanes.
#pragma once

#include <cstring>
#include <limits>

#include "math/kernels.h"

namespace KVASIR_SIMD_NS {
namespace {

typedef double Doubles __attribute__((vector_size(8 * kDoubleLanes)));
typedef float FloatsOfDoubles __attribute__((vector_size(4 * kDoubleLanes)));

void weigh_logits(const kvasir::WeighArgs& a) {
  const Doubles limit = Doubles{} + a.limit;
  const FloatsOfDoubles least = FloatsOfDoubles{} + a.least;
  const FloatsOfDoubles removed = FloatsOfDoubles{} - std::numeric_limits<float>::infinity();
  for (int64_t i = 0; i < a.n; i += kDoubleLanes) {
    FloatsOfDoubles x;
    std::memcpy(&x, a.x + i, sizeof x);
    x = x >= least ? x : removed;
    Doubles depth = (a.best - __builtin_convertvector(x, Doubles)) * a.scale;
    depth = depth < limit ? depth : limit;
    const Doubles rounded = depth + kvasir::kWeighRounder;
    const Doubles r = ((rounded - kvasir::kWeighRounder) - depth) * a.interval;
    const Doubles weight = 1.0 + r * (1.0 + r * (0.5 + r * (1.0 / 6 + r * (1.0 / 24))));
    std::memcpy(a.rounded + i, &rounded, sizeof rounded);
    std::memcpy(a.weights + i, &weight, sizeof weight);
  }
}

}  // namespace
}  // namespace KVASIR_SIMD_NS
