// For tests only: the table of vec16_ops.h for the V16 of KVASIR_SIMD_NS. Included once per CPU, after that CPU's vec16
// header, inside the region that its compiler flags cover.
#pragma once

#include "math/functions.h"
#include "tests/support/vec16_ops.h"

namespace KVASIR_SIMD_NS {

#define KVASIR_TEST_OP(name, expression)                                                        \
  static void op_##name([[maybe_unused]] const float* pa, [[maybe_unused]] const float* pb,     \
                        [[maybe_unused]] const float* pc, [[maybe_unused]] int n, float* out) { \
    [[maybe_unused]] const V16 a = load(pa), b = load(pb), c = load(pc);                        \
    store(out, expression);                                                                     \
  }
#define KVASIR_TEST_LOAD(name, expression) \
  static void op_##name(const void* source, [[maybe_unused]] int n, float* out) { store(out, expression); }

KVASIR_TEST_LOAD(load, load(static_cast<const float*>(source)))
KVASIR_TEST_LOAD(load_n, load_n(static_cast<const float*>(source), n))
KVASIR_TEST_LOAD(load_f16, load_f16(source))
KVASIR_TEST_LOAD(load_f16_n, load_f16_n(source, n))
KVASIR_TEST_LOAD(load_bf16, load_bf16(source))
KVASIR_TEST_LOAD(load_bf16_n, load_bf16_n(source, n))
static void op_store(const float* a, int, float* target) { store(target, load(a)); }
static void op_store_n(const float* a, int n, float* target) { store_n(target, load(a), n); }

KVASIR_TEST_OP(set1, set1(pa[0]))
KVASIR_TEST_OP(zero, zero())
KVASIR_TEST_OP(iota, iota())
KVASIR_TEST_OP(add, a + b)
KVASIR_TEST_OP(sub, a - b)
KVASIR_TEST_OP(mul, a* b)
KVASIR_TEST_OP(div, a / b)
KVASIR_TEST_OP(sqrt, sqrt(a))
KVASIR_TEST_OP(fma, fma(a, b, c))
KVASIR_TEST_OP(fma_n, fma_n(a, b, c, n))
KVASIR_TEST_OP(lt, select(lt(a, b), set1(1.0f), zero()))
KVASIR_TEST_OP(gt, select(gt(a, b), set1(1.0f), zero()))
KVASIR_TEST_OP(mask_bits, select(mask_bits(static_cast<uint32_t>(n)), a, b))
KVASIR_TEST_OP(select_lt, select(lt(a, b), a, c))
KVASIR_TEST_OP(abs, abs(a))
KVASIR_TEST_OP(negate, negate(a))
KVASIR_TEST_OP(copysign, copysign(a, b))
KVASIR_TEST_OP(max, max(a, b))
KVASIR_TEST_OP(pow2, pow2(a))
KVASIR_TEST_OP(fold, set1(fold(a)))
KVASIR_TEST_OP(largest_lane, set1(largest_lane(a)))
KVASIR_TEST_OP(round_to_int, round_to_int_v(a))
KVASIR_TEST_OP(exp, exp_v(a))
KVASIR_TEST_OP(tanh, tanh_v(a))
KVASIR_TEST_OP(sigmoid, sigmoid_v(a))
KVASIR_TEST_OP(silu, silu_v(a))
KVASIR_TEST_OP(gelu_tanh, gelu_tanh_v(a))
KVASIR_TEST_OP(sin, sin_v(a))
KVASIR_TEST_OP(cos, cos_v(a))

static void op_fold16(const float* a, const float*, const float*, int, float* out) {
  V16 rows[16];
  for (int i = 0; i < 16; ++i) rows[i] = load(a + 16 * i);
  prefetch(out);
  store(out, fold16(rows));
}

static void op_transpose16(const float* a, const float*, const float*, int, float* out) {
  V16 rows[16], columns[16];
  for (int i = 0; i < 16; ++i) rows[i] = load(a + 16 * i);
  transpose16(rows, columns);
  for (int i = 0; i < 16; ++i) store(out + 16 * i, columns[i]);
}

#undef KVASIR_TEST_OP
#undef KVASIR_TEST_LOAD

static constexpr Vec16Ops make_ops(const char* cpu, bool (*runs_here)()) {
  return {.cpu = cpu,
          .runs_here = runs_here,
          .load = op_load,
          .load_n = op_load_n,
          .load_f16 = op_load_f16,
          .load_f16_n = op_load_f16_n,
          .load_bf16 = op_load_bf16,
          .load_bf16_n = op_load_bf16_n,
          .store = op_store,
          .store_n = op_store_n,
          .set1 = op_set1,
          .zero = op_zero,
          .iota = op_iota,
          .add = op_add,
          .sub = op_sub,
          .mul = op_mul,
          .div = op_div,
          .sqrt = op_sqrt,
          .fma = op_fma,
          .fma_n = op_fma_n,
          .lt = op_lt,
          .gt = op_gt,
          .mask_bits = op_mask_bits,
          .select_lt = op_select_lt,
          .abs = op_abs,
          .negate = op_negate,
          .copysign = op_copysign,
          .max = op_max,
          .pow2 = op_pow2,
          .fold = op_fold,
          .largest_lane = op_largest_lane,
          .fold16 = op_fold16,
          .transpose16 = op_transpose16,
          .round_to_int = op_round_to_int,
          .exp = op_exp,
          .tanh = op_tanh,
          .sigmoid = op_sigmoid,
          .silu = op_silu,
          .gelu_tanh = op_gelu_tanh,
          .sin = op_sin,
          .cos = op_cos};
}

}  // namespace KVASIR_SIMD_NS
