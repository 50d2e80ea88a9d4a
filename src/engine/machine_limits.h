// Measured limits of this machine that only benchmarks need; measure_read_bandwidth is public in plan.h.
#pragma once

#include <kvasir/result.h>

namespace kvasir {

/// What the memory and the arithmetic of this machine reach with so many threads. A rate more is a field more.
struct Limits {
  double read_bytes_s = 0;  ///< from memory, larger than any cache
  double flops = 0;         ///< f32 fused multiply-adds in registers, two operations each
  double int8_ops = 0;      ///< products of bytes summed in 32 bits, two operations each
};

/// Measured now, in about half a second. Errors: a thread count out of range, no memory.
Result<Limits> measure_limits(int threads);

}  // namespace kvasir
