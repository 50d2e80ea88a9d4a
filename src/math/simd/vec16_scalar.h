// One float with the arithmetic names of vec16, over the scalar fused multiply-add. It is the number type of the scalar
// reference, so the templates of functions.h run on it with the same operations. No kernels.
#pragma once

#include <cstdint>
#include <cstring>

#include "math/simd/vec16_common.h"

namespace kvasir::scalar {

struct F1 {
  float v;
  static KVASIR_SIMD_MEMBER F1 broadcast(float x) { return {x}; }
};

struct M1 {
  bool m;
};

KVASIR_SIMD_FN F1 set1(float x) { return {x}; }
KVASIR_SIMD_FN F1 zero() { return {0.0f}; }
KVASIR_SIMD_FN F1 load(const float* p) { return {*p}; }
KVASIR_SIMD_FN void store(float* p, F1 x) { *p = x.v; }

KVASIR_SIMD_FN F1 operator+(F1 a, F1 b) { return {a.v + b.v}; }
KVASIR_SIMD_FN F1 operator-(F1 a, F1 b) { return {a.v - b.v}; }
KVASIR_SIMD_FN F1 operator*(F1 a, F1 b) { return {a.v * b.v}; }
KVASIR_SIMD_FN F1 operator/(F1 a, F1 b) { return {a.v / b.v}; }
KVASIR_SIMD_FN F1 sqrt(F1 x) { return {__builtin_sqrtf(x.v)}; }
/// a * b + c, rounded once. Uses std::fma's builtin, because <cmath> could emit weak symbols.
KVASIR_SIMD_FN F1 fma(F1 a, F1 b, F1 c) { return {__builtin_fmaf(a.v, b.v, c.v)}; }

KVASIR_SIMD_FN M1 lt(F1 a, F1 b) { return {a.v < b.v}; }
KVASIR_SIMD_FN M1 gt(F1 a, F1 b) { return {a.v > b.v}; }
KVASIR_SIMD_FN F1 select(M1 m, F1 if_true, F1 if_false) { return m.m ? if_true : if_false; }
KVASIR_SIMD_FN F1 max(F1 a, F1 b) { return select(gt(a, b), a, b); }

KVASIR_SIMD_FN F1 abs(F1 x) { return {__builtin_fabsf(x.v)}; }
KVASIR_SIMD_FN F1 negate(F1 x) { return {-x.v}; }
KVASIR_SIMD_FN F1 copysign(F1 magnitude, F1 sign_of) { return {__builtin_copysignf(magnitude.v, sign_of.v)}; }

/// 2^n for integer-valued n in [-126, 127]; 1 for NaN, as on the vector targets.
KVASIR_SIMD_FN F1 pow2(F1 n) {
  const uint32_t bits = n.v == n.v ? static_cast<uint32_t>(static_cast<int32_t>(n.v) + 127) << 23 : 127u << 23;
  F1 r;
  __builtin_memcpy(&r.v, &bits, sizeof r.v);
  return r;
}

}  // namespace kvasir::scalar
