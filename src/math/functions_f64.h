// Double-precision functions for tables that are computed once (RoPE, YaRN) and for sampling. Our own code over the
// fused multiply-add, so that every CPU and C library gives the same bits. Scalar only; the float kernels use
// functions.h.
#pragma once

namespace kvasir {

/// e^x within 2 ulp, including denormal results. Overflow gives infinity, underflow 0, NaN gives NaN.
double exp_f64(double x);
/// Natural logarithm within 2 ulp; log 0 is minus infinity, a negative x gives NaN.
double log_f64(double x);
/// base^e for base > 0, within 2 ulp while the result is normal.
double pow_f64(double base, double e);
/// sin x and cos x for |x| <= 1e7, within 2 ulp; a non-finite x gives NaN.
void sincos_f64(double x, double* sin_x, double* cos_x);

}  // namespace kvasir
