// Measured limits of this machine that only benchmarks need; measure_read_bandwidth is public in plan.h.
#pragma once

#include <kvasir/result.h>

namespace kvasir {

/// f32 operations per second of fused multiply-adds in registers, two per FMA, with so many threads.
Result<double> measure_fma_rate(int threads);

}  // namespace kvasir
