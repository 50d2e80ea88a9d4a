// The forward pass's functions, written once over the vec16 operations so that every CPU computes the same bits: exp,
// tanh, sigmoid, silu, gelu, sin, cos. V is a V16 of any vec16_*.h, or scalar::F1. They use only + - * / fma,
// comparisons, selections, sign operations and pow2. Loops over rows are in the kernels; double precision is in
// functions_f64.h.
//
// Largest errors over every float (sin, cos: to 1e5), in ulp: exp 0.90, tanh 1.59, sigmoid 1.97, sin 1.54, cos 1.53;
// functions_test.cc samples them against a bound of 2. NaN gives NaN.
// Every polynomial is our own fit: a Remez exchange in 40 digits (mpmath) for the relative error of the function, the
// coefficients rounded to float one by one from the lowest, the rest refitted after each. The error given is the fit's.
#pragma once

#include "math/simd/vec16_common.h"

namespace kvasir {

/// The nearest integer, ties to even, for |x| < 2^22: adding 1.5 * 2^23 leaves no bits for a fraction.
template <class V>
KVASIR_SIMD_FN V round_to_int_v(V x) {
  const V magic = V::broadcast(0x1.8p23f);
  return (x + magic) - magic;
}

/// e^x; 0 below -104, infinity above 88.73. Denormal results are rounded a second time, from a normal number.
template <class V>
KVASIR_SIMD_FN V exp_v(V x) {
  // Beyond these ends the result is already 0 or infinity, and n below stays in range of two powers of two.
  const V high = V::broadcast(89.0f);
  const V a = max(V::broadcast(-104.0f), select(gt(x, high), high, x));
  const V n = round_to_int_v(a * V::broadcast(0x1.715476p0f));
  // ln 2 in two parts; n times the first is exact.
  const V r = fma(n, V::broadcast(-0x1.7f7d1cp-20f), fma(n, V::broadcast(-0x1.62e4p-1f), a));
  // e^r = 1 + r + r^2 q(r) for |r| <= 0.3475; relative error 2^-27.9.
  V q = V::broadcast(0x1.69cd1ap-10f);
  q = fma(q, r, V::broadcast(0x1.123906p-7f));
  q = fma(q, r, V::broadcast(0x1.55591ap-5f));
  q = fma(q, r, V::broadcast(0x1.555494p-3f));
  q = fma(q, r, V::broadcast(0x1.fffffcp-2f));
  const V one = V::broadcast(1.0f);
  const V p = fma(fma(q, r, one), r, one);
  const V half = round_to_int_v(n * V::broadcast(0.5f));
  return (p * pow2(half)) * pow2(n - half);
}

/// tanh x.
template <class V>
KVASIR_SIMD_FN V tanh_v(V x) {
  const V a = abs(x), z = a * a, one = V::broadcast(1.0f), two = V::broadcast(2.0f);
  // tanh a = a + a^3 q(a^2) for a <= 0.55; relative error 2^-29.3.
  V q = V::broadcast(-0x1.a153acp-8f);
  q = fma(q, z, V::broadcast(0x1.5a6db4p-6f));
  q = fma(q, z, V::broadcast(-0x1.b951e4p-5f));
  q = fma(q, z, V::broadcast(0x1.110e4ap-3f));
  q = fma(q, z, V::broadcast(-0x1.555550p-2f));
  const V near = fma(z * q, a, a);
  // For larger a, tanh a >= 1/2, so the subtraction keeps its digits.
  const V far = one - two / (exp_v(two * a) + one);
  return copysign(select(lt(a, V::broadcast(0.55f)), near, far), x);
}

/// 1 / (1 + e^-x), computed from e^-|x|, so that far negative x keep their relative accuracy.
template <class V>
KVASIR_SIMD_FN V sigmoid_v(V x) {
  const V one = V::broadcast(1.0f), e = exp_v(negate(abs(x)));
  const auto negative = lt(x, V::broadcast(0.0f));
  const V d = one + e;
  const V q = select(negative, e, one) / d;
  // Corrects for the rounding error of the sum, up to 1 ulp of q. 1/d is q itself, or 1 - q if q is e/d.
  const V lost = e - (d - one), reciprocal = select(negative, one - q, q);
  return fma(negate(q * lost), reciprocal, q);
}

/// x * sigmoid(x). Minus infinity gives NaN: an infinite activation is an error and must stay visible.
template <class V>
KVASIR_SIMD_FN V silu_v(V x) {
  return x * sigmoid_v(x);
}

/// GPT-2's gelu_new, 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), by the identity (1 + tanh u) / 2 = sigmoid(2 u):
/// x * sigmoid(x * fma(x * x, 2 sqrt(2/pi) 0.044715, 2 sqrt(2/pi))). Nothing cancels for negative x, and it is cheaper.
/// Minus infinity gives NaN, as in silu_v.
template <class V>
KVASIR_SIMD_FN V gelu_tanh_v(V x) {
  constexpr double kTwoRootTwoOverPi = 1.5957691216057307;
  const V linear = V::broadcast(static_cast<float>(kTwoRootTwoOverPi));
  const V cubic = V::broadcast(static_cast<float>(kTwoRootTwoOverPi * 0.044715));
  return x * sigmoid_v(x * fma(x * x, cubic, linear));
}

/// The exact GELU, x (1 + erf(x / sqrt 2)) / 2, by erfc(a) = e^(-a^2) t p(t), t = 1 / (1 + a/2), a = |x| / sqrt 2.
/// Minus infinity gives NaN, as in silu_v.
template <class V>
KVASIR_SIMD_FN V gelu_erf_v(V x) {
  const V half = V::broadcast(0.5f), one = V::broadcast(1.0f);
  const V t = one / fma(abs(x), V::broadcast(0x1.6a09e6p-2f), one);
  // Relative error 2^-25.6 for a <= 10, past which erfc is 0 in f32.
  V p = V::broadcast(0x1.927c36p-7f);
  p = fma(p, t, V::broadcast(-0x1.f8d530p-4f));
  p = fma(p, t, V::broadcast(0x1.b736d6p-2f));
  p = fma(p, t, V::broadcast(-0x1.570c26p-1f));
  p = fma(p, t, V::broadcast(0x1.af617cp-2f));
  p = fma(p, t, V::broadcast(-0x1.92b4bcp-4f));
  p = fma(p, t, V::broadcast(0x1.cde8fep-3f));
  p = fma(p, t, V::broadcast(0x1.e8be8ep-3f));
  p = fma(p, t, V::broadcast(0x1.21a548p-2f));
  p = fma(p, t, V::broadcast(0x1.20d584p-2f));
  const V tail = half * (exp_v(x * x * V::broadcast(-0.5f)) * (t * p));
  return x * select(lt(x, V::broadcast(0.0f)), tail, one - tail);
}

/// max(x, 0)^2.
template <class V>
KVASIR_SIMD_FN V relu_squared_v(V x) {
  const V y = select(lt(x, V::broadcast(0.0f)), V::broadcast(0.0f), x);
  return y * y;
}

/// gpt-oss's SwiGLU: a sigmoid(1.702 a) (u + 1) with a = min(gate, 7) and u = up clamped to -7..7.
template <class V>
KVASIR_SIMD_FN V clamped_swiglu_v(V gate, V up) {
  const V most = V::broadcast(7.0f), least = V::broadcast(-7.0f);
  const V a = select(gt(gate, most), most, gate);
  const V u = select(gt(up, most), most, select(lt(up, least), least, up));
  return a * sigmoid_v(V::broadcast(1.702f) * a) * (u + V::broadcast(1.0f));
}

/// x = n pi/2 + r with |r| <= pi/4.
template <class V>
struct QuarterTurns {
  V n, r;
};
template <class V>
KVASIR_SIMD_FN QuarterTurns<V> reduce_quarter_turns(V x) {
  const V n = round_to_int_v(x * V::broadcast(0x1.45f306p-1f));
  // pi/2 in three floats; the first step is exact (the bits cancel), the second rounds at r's own scale.
  V r = fma(n, V::broadcast(-0x1.921fb6p0f), x);
  r = fma(n, V::broadcast(0x1.777a5cp-25f), r);
  return {n, fma(n, V::broadcast(0x1.ee59dap-50f), r)};
}

/// sin(n pi/2 + r): sin r or cos r by the parity of n, negated in the half turn where n mod 4 is 2 or 3 (here 2, -2 or
/// -1).
template <class V>
KVASIR_SIMD_FN V sin_of_turns(V n, V r) {
  const V a = abs(r), z = r * r, one = V::broadcast(1.0f);
  // sin a = a + a^3 s(a^2), relative error 2^-27.6; cos a = 1 - a^2/2 + a^4 c(a^2), relative error 2^-31.8.
  V s = V::broadcast(-0x1.997caep-13f);
  s = fma(s, z, V::broadcast(0x1.11080ep-7f));
  s = fma(s, z, V::broadcast(-0x1.555548p-3f));
  V c = V::broadcast(0x1.9aa936p-16f);
  c = fma(c, z, V::broadcast(-0x1.6c0f38p-10f));
  c = fma(c, z, V::broadcast(0x1.555550p-5f));
  c = fma(c, z, V::broadcast(-0.5f));
  const V sine = copysign(fma(z * s, a, a), r), cosine = fma(c, z, one);
  // n mod 4 as -2..2 (a tie of n/4 may go either way).
  const V turn = fma(round_to_int_v(n * V::broadcast(0.25f)), V::broadcast(-4.0f), n);
  const V from_odd = abs(abs(turn) - one);  // 0 when n is odd, else 1
  const V value = select(lt(from_odd, V::broadcast(0.5f)), cosine, sine);
  const V back =
      select(gt(turn, V::broadcast(1.5f)), one, select(lt(turn, V::broadcast(-0.5f)), one, V::broadcast(0.0f)));
  return select(gt(back, V::broadcast(0.5f)), negate(value), value);
}

/// sin x for |x| <= 1e5 radians; infinity gives NaN.
template <class V>
KVASIR_SIMD_FN V sin_v(V x) {
  const QuarterTurns<V> t = reduce_quarter_turns(x);
  // Below 2^-13 sin x equals x to the last bit but one, and the reduction would lose the sign of a zero.
  return select(lt(abs(x), V::broadcast(0x1p-13f)), x, sin_of_turns(t.n, t.r));
}

/// cos x for |x| <= 1e5 radians; infinity gives NaN.
template <class V>
KVASIR_SIMD_FN V cos_v(V x) {
  const QuarterTurns<V> t = reduce_quarter_turns(x);
  return sin_of_turns(t.n + V::broadcast(1.0f), t.r);
}

}  // namespace kvasir
