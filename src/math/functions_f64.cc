// exp, log, pow, sin and cos in double. Series coefficients are exact fractions, rounded by the compiler; nothing is
// fitted.
#include "math/functions_f64.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace kvasir {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
// ln 2 in two parts. The first has 20 zero bits at its end, so that k times it is exact.
constexpr double kLn2High = 0x1.62e42feep-1, kLn2Low = 0x1.a39ef35793c76p-33;

/// A value as an unevaluated sum, |low| far below |high|.
struct Pair {
  double high, low;
};

/// The nearest integer, ties to even, for |x| < 2^51.
double round_to_int(double x) { return (x + 0x1.8p52) - 0x1.8p52; }

/// 2^n for integer-valued n in [-1022, 1023].
double pow2(double n) { return std::bit_cast<double>(static_cast<uint64_t>(static_cast<int64_t>(n) + 1023) << 52); }

/// sum_k coefficient[k] z^k by fused multiply-adds.
template <int N>
double horner(const double (&coefficient)[N], double z) {
  double sum = coefficient[N - 1];
  for (int k = N - 2; k >= 0; --k) sum = std::fma(sum, z, coefficient[k]);
  return sum;
}

// 1/2!, 1/3!, ... 1/14!: e^r = 1 + r + r^2 (...), the next term below 2^-60 for |r| <= 0.347.
constexpr double kExp[] = {1.0 / 2,         1.0 / 6,          1.0 / 24,         1.0 / 120,     1.0 / 720,
                           1.0 / 5040,      1.0 / 40320,      1.0 / 362880,     1.0 / 3628800, 1.0 / 39916800,
                           1.0 / 479001600, 1.0 / 6227020800, 1.0 / 87178291200};
// log((1+s)/(1-s)) = 2 s + s z (2/3 + 2/5 z + ...) with z = s^2 <= 0.0295.
constexpr double kLog[] = {2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11, 2.0 / 13,
                           2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21, 2.0 / 23};
// sin r = r + r z (-1/3! + z/5! - ...), cos r = 1 - z/2 + z^2 (1/4! - z/6! + ...), |r| <= pi/4, next terms below 2^-62.
constexpr double kSin[] = {-1.0 / 6,        1.0 / 120,        -1.0 / 5040,         1.0 / 362880,
                           -1.0 / 39916800, 1.0 / 6227020800, -1.0 / 1307674368e3, 1.0 / 355687428096e3};
constexpr double kCos[] = {1.0 / 24,        -1.0 / 720,         1.0 / 40320,         -1.0 / 3628800,
                           1.0 / 479001600, -1.0 / 87178291200, 1.0 / 20922789888e3, -1.0 / 6402373705728e3};

/// e^(x + low) for a low far below x.
double exp_of(double x, double low) {
  if (x != x) return kNaN;
  if (x > 710.0) return kInfinity;
  if (x < -746.0) return 0.0;
  const double k = round_to_int(x * 0x1.71547652b82fep0);
  const double high = std::fma(k, -kLn2High, x);
  const double rest = std::fma(k, -kLn2Low, low);
  const double r = high + rest, lost = (high - r) + rest;
  const double tail = std::fma(r * r, horner(kExp, r), lost);
  const double p = 1.0 + (r + tail);
  const double half = round_to_int(0.5 * k);
  return (p * pow2(half)) * pow2(k - half);
}

/// log x for a finite x > 0, to about 2^-58 of its size.
Pair log_of(double x) {
  double exponent = 0.0;
  if (x < 0x1p-1022) {  // denormal
    x *= 0x1p54;
    exponent = -54.0;
  }
  // x = 2^exponent m with m in [sqrt(1/2), sqrt(2)).
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  const uint64_t shifted = bits - 0x3fe6a09e667f3bcdu;  // minus the bits of sqrt(1/2)
  const int64_t e = static_cast<int64_t>(shifted) >> 52;
  const double m = std::bit_cast<double>(bits - (static_cast<uint64_t>(e) << 52));
  exponent += static_cast<double>(e);

  // s = f / (2 + f) with f = m - 1, and its rounding error.
  const double f = m - 1.0, d = 2.0 + f;
  const double s = f / d;
  const double s_lost = (std::fma(-s, d, f) - s * (f - (d - 2.0))) / d;
  const double z = s * s;
  const double series = std::fma(s * z, horner(kLog, z), 2.0 * s_lost);
  // exponent ln 2 + 2 s + series, from large to small.
  const double a = exponent * kLn2High, b = 2.0 * s;
  const double sum = a + b, b_part = sum - a;
  const double low = ((a - (sum - b_part)) + (b - b_part)) + std::fma(exponent, kLn2Low, series);
  const double high = sum + low;
  return {high, (sum - high) + low};
}

}  // namespace

double exp_f64(double x) { return exp_of(x, 0.0); }

double log_f64(double x) {
  if (x == 0.0) return -kInfinity;
  if (!(x > 0.0)) return kNaN;
  if (x == kInfinity) return x;
  return log_of(x).high;
}

double pow_f64(double base, double e) {
  if (e == 0.0 || base == 1.0) return 1.0;
  if (!(base > 0.0) || base == kInfinity) return exp_of(e * log_f64(base), 0.0);
  const Pair l = log_of(base);
  const double high = e * l.high;
  if (!(std::fabs(high) < 1e4)) return exp_of(high, 0.0);  // 0, infinity or NaN
  return exp_of(high, std::fma(e, l.low, std::fma(e, l.high, -high)));
}

void sincos_f64(double x, double* sin_x, double* cos_x) {
  if (!(std::fabs(x) < kInfinity)) {
    *sin_x = *cos_x = kNaN;
    return;
  }
  if (x == 0.0) {  // keeps the zero's sign
    *sin_x = x;
    *cos_x = 1.0;
    return;
  }
  // x = n pi/2 + r + lost, with pi/2 in three doubles; the first step is exact (the bits cancel).
  const double n = round_to_int(x * 0x1.45f306dc9c883p-1);
  const double first = std::fma(n, -0x1.921fb54442d18p0, x);
  const double second = n * 0x1.1a62633145c07p-54, second_lost = std::fma(n, 0x1.1a62633145c07p-54, -second);
  const double r = first - second, back = first - r;
  const double lost = std::fma(n, 0x1.f1976b8p-110, (back - second) - second_lost);
  const double z = r * r;
  // sin(r + lost) = sin r + lost cos r; cos(r + lost) = cos r - lost sin r.
  const double s = r + std::fma(r * z, horner(kSin, z), std::fma(-0.5 * z, lost, lost));
  const double half_z = 0.5 * z, w = 1.0 - half_z;
  const double c = w + (((1.0 - w) - half_z) + std::fma(z * z, horner(kCos, z), -(r * lost)));
  const int64_t turn = static_cast<int64_t>(n) & 3;
  const double a = (turn & 1) != 0 ? c : s, b = (turn & 1) != 0 ? s : c;
  *sin_x = (turn & 2) != 0 ? -a : a;
  *cos_x = turn == 1 || turn == 2 ? -b : b;
}

}  // namespace kvasir
