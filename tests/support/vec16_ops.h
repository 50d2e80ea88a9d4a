// For tests only: every vec16 operation as a plain function over arrays of 16 floats, one table per CPU, so that all
// implementations see the same input without a wide-vector type in the test's own code.
#pragma once

namespace kvasir {

struct Vec16Ops {
  /// a, b, c and out: 16 floats (fold16's a, transpose16's a and out: 16 x 16). n: the lane count, the bit mask or
  /// unused, as the operation needs.
  using Op = void (*)(const float* a, const float* b, const float* c, int n, float* out);
  /// `source`: n stored values of the type being loaded (16 for the loads without a count).
  using LoadOp = void (*)(const void* source, int n, float* out);
  using StoreOp = void (*)(const float* a, int n, float* target);

  const char* cpu;
  bool (*runs_here)();

  LoadOp load, load_n, load_f16, load_f16_n, load_bf16, load_bf16_n;
  StoreOp store, store_n;
  Op set1, zero, iota;
  Op add, sub, mul, div, sqrt, fma, fma_n;
  Op lt, gt;     // 1 where true, else 0
  Op mask_bits;  // bit i of n chooses lane i of a, else of b
  Op select_lt;  // select(lt(a, b), a, c)
  Op abs, negate, copysign, max, pow2;
  Op fold, largest_lane;  // every lane is the one result
  Op fold16, transpose16;
  Op round_to_int, exp, tanh, sigmoid, silu, gelu_tanh, sin, cos;
};

/// Return nullptr if the compiler's target is another architecture.
const Vec16Ops* vec16_ops_avx2();
const Vec16Ops* vec16_ops_avx512();
const Vec16Ops* vec16_ops_neon();

}  // namespace kvasir
