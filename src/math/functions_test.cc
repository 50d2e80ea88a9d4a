// Accuracy and limits of functions.h and functions_f64.h against the long double C library. The float functions are
// measured on the scalar type; vec16_test.cc shows that every CPU gives the same bits.
#include "math/functions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <random>
#include <string>

#include "math/functions_f64.h"
#include "math/simd/vec16_scalar.h"

namespace kvasir {
namespace {

using scalar::F1;
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

float exp1(float x) { return exp_v(F1{x}).v; }
float tanh1(float x) { return tanh_v(F1{x}).v; }
float sigmoid1(float x) { return sigmoid_v(F1{x}).v; }
float silu1(float x) { return silu_v(F1{x}).v; }
float gelu1(float x) { return gelu_tanh_v(F1{x}).v; }
float sin1(float x) { return sin_v(F1{x}).v; }
float cos1(float x) { return cos_v(F1{x}).v; }

long double sigmoid_exact(long double x) { return x > 0 ? 1 / (1 + expl(-x)) : expl(x) / (1 + expl(x)); }

/// The spacing at `x` of a type with `digits` bits and least exponent `least`.
long double spacing(long double x, int digits, int least) {
  int exponent = 0;
  std::frexp(x, &exponent);
  return std::ldexp(1.0L, std::max(exponent - digits, least));
}
long double float_ulps(float got, long double want) {
  return std::fabs(static_cast<long double>(got) - want) / spacing(want, 24, -149);
}
long double double_ulps(double got, long double want) {
  return std::fabs(static_cast<long double>(got) - want) / spacing(want, 53, -1074);
}

struct Worst {
  long double ulps = 0;
  double at = 0;
  void see(long double error, double x) {
    if (!(error <= ulps)) ulps = error, at = x;
  }
};

/// Tests every 1009th bit pattern with |x| <= limit, both signs.
void expect_accurate(const char* name, float (*f)(float), long double (*exact)(long double), float limit,
                     double allowed) {
  constexpr uint32_t kStride = 1009;
  Worst worst;
  const uint32_t last = std::bit_cast<uint32_t>(limit);
  for (uint32_t bits = 1; bits <= last; bits += kStride)
    for (const float x : {std::bit_cast<float>(bits), -std::bit_cast<float>(bits)}) {
      const long double want = exact(x);
      const float got = f(x);
      if (std::fabs(want) > 0x1.ffffffp127L) {  // rounds to infinity
        ASSERT_EQ(std::fabs(got), kInf) << name << " of " << x;
        continue;
      }
      worst.see(float_ulps(got, want), x);
      ASSERT_EQ(std::signbit(got), std::signbit(want)) << name << " of " << x;
    }
  testing::Test::RecordProperty(std::string(name) + "_max_ulp", std::to_string(worst.ulps));
  EXPECT_LE(worst.ulps, allowed) << name << " at " << worst.at;
}

// Past 110 all of these are at their limits, which the Limits test covers.
TEST(Functions, ExpIsWithinTwoUlp) { expect_accurate("exp", exp1, expl, 110.0f, 2.0); }
TEST(Functions, TanhIsWithinTwoUlp) { expect_accurate("tanh", tanh1, tanhl, 110.0f, 2.0); }
TEST(Functions, SigmoidIsWithinTwoUlp) { expect_accurate("sigmoid", sigmoid1, sigmoid_exact, 110.0f, 2.0); }
TEST(Functions, SinIsWithinTwoUlp) { expect_accurate("sin", sin1, sinl, 1e5f, 2.0); }
TEST(Functions, CosIsWithinTwoUlp) { expect_accurate("cos", cos1, cosl, 1e5f, 2.0); }

// Next to a multiple of pi/2 the result depends on the low parts of pi/2.
TEST(Functions, SinAndCosNearMultiplesOfAQuarterTurn) {
  Worst worst;
  for (int n = 1; n < 63000; ++n) {
    const float x = static_cast<float>(n * (std::numbers::pi / 2));
    for (const float near : {x, std::nextafter(x, 0.0f), std::nextafter(x, kInf)}) {
      worst.see(float_ulps(sin1(near), sinl(near)), near);
      worst.see(float_ulps(cos1(near), cosl(near)), near);
    }
  }
  RecordProperty("max_ulp", std::to_string(worst.ulps));
  EXPECT_LE(worst.ulps, 2.0) << worst.at;
}

TEST(Functions, ExpAroundDenormalResultsAndOverflow) {
  Worst worst;
  for (float x = -104.5f; x < -86.0f; x = std::nextafter(x, 0.0f) + 0x1p-13f)
    worst.see(float_ulps(exp1(x), expl(x)), x);
  EXPECT_LE(worst.ulps, 1.0) << worst.at;
  EXPECT_LT(exp1(88.72283f), kInf);
  EXPECT_EQ(exp1(88.73f), kInf);
  EXPECT_EQ(exp1(-103.9f), 0x1p-149f);
}

TEST(Functions, SiluIsItsDefinition) {
  for (uint32_t bits = 1; bits < 0x7f800000u; bits += 9973)
    for (const float x : {std::bit_cast<float>(bits), -std::bit_cast<float>(bits)}) {
      ASSERT_EQ(silu1(x), x * sigmoid1(x));
      const long double want = x * sigmoid_exact(x);
      const bool normal = x > -87.0f && std::fabs(want) > 0x1p-126L;
      ASSERT_LE(normal ? float_ulps(silu1(x), want) : 0, 3.5) << x;
    }
}

// The sigmoid's argument is rounded, so its relative error grows with the argument; near 0 nothing is lost.
TEST(Functions, GeluFollowsTheTanhForm) {
  for (uint32_t bits = 1; bits < 0x7f800000u; bits += 9973)
    for (const float x : {std::bit_cast<float>(bits), -std::bit_cast<float>(bits)}) {
      const long double y = x, root = std::sqrt(2 / std::numbers::pi_v<long double>);
      const long double u = root * (y + 0.044715L * y * y * y);
      const long double want = y * sigmoid_exact(2 * u);
      if (std::fabs(x) < 5.0f) {
        ASSERT_NEAR(static_cast<double>(0.5L * y * (1 + tanhl(u))), static_cast<double>(want), 1e-15);
      }
      ASSERT_LE(std::fabs(gelu1(x) - want), std::fabs(y) * 0x1p-23L + 0x1p-149L) << x;
      const bool normal = std::fabs(want) > 0x1p-125L && want < 0x1p127L;
      ASSERT_LE(normal ? float_ulps(gelu1(x), want) : 0, 4.0L + 4.0L * std::max(-2 * u, 0.0L)) << x;
    }
}

TEST(Functions, Limits) {
  EXPECT_EQ(exp1(kInf), kInf);
  EXPECT_EQ(exp1(-kInf), 0.0f);
  EXPECT_EQ(exp1(0.0f), 1.0f);
  EXPECT_EQ(exp1(-0.0f), 1.0f);
  EXPECT_EQ(tanh1(kInf), 1.0f);
  EXPECT_EQ(tanh1(-kInf), -1.0f);
  EXPECT_EQ(sigmoid1(kInf), 1.0f);
  EXPECT_EQ(sigmoid1(-kInf), 0.0f);
  EXPECT_EQ(sigmoid1(0.0f), 0.5f);
  EXPECT_EQ(silu1(kInf), kInf);
  EXPECT_EQ(gelu1(kInf), kInf);
  EXPECT_EQ(cos1(0.0f), 1.0f);
  for (float (*f)(float) : {sin1, tanh1, silu1, gelu1}) {
    EXPECT_EQ(std::bit_cast<uint32_t>(f(0.0f)), 0u);
    EXPECT_EQ(std::bit_cast<uint32_t>(f(-0.0f)), 0x80000000u);
  }
  for (float (*f)(float) : {exp1, tanh1, sigmoid1})
    for (float x = 111.0f; x < kInf; x *= 7.0f) {
      EXPECT_EQ(f(x), f(kInf)) << x;
      EXPECT_EQ(f(-x), f(-kInf)) << x;
    }
}

TEST(Functions, NanAndFaultsStayVisible) {
  for (float (*f)(float) : {exp1, tanh1, sigmoid1, silu1, gelu1, sin1, cos1}) EXPECT_TRUE(std::isnan(f(kNan)));
  for (float (*f)(float) : {silu1, gelu1}) EXPECT_TRUE(std::isnan(f(-kInf)));
  for (float (*f)(float) : {sin1, cos1})
    for (float x : {kInf, -kInf}) EXPECT_TRUE(std::isnan(f(x)));
}

TEST(Functions, RoundsToTheNearestEvenInteger) {
  std::mt19937 random(1);
  for (int i = 0; i < 100000; ++i) {
    const float x = static_cast<float>(static_cast<int32_t>(random())) * 0x1p-10f;
    ASSERT_EQ(round_to_int_v(F1{x}).v, std::nearbyint(x)) << x;
  }
  for (float x : {0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f}) EXPECT_EQ(round_to_int_v(F1{x}).v, std::nearbyint(x)) << x;
}

TEST(FunctionsF64, AreWithinTwoUlp) {
  std::mt19937_64 random(1);
  const auto between = [&](double low, double high) {
    return low + (high - low) * static_cast<double>(random() >> 11) * 0x1p-53;
  };
  Worst exp_worst, log_worst, pow_worst, trig_worst;
  for (int i = 0; i < 150000; ++i) {
    const double spread[] = {between(-745, 709), between(-2, 2), between(-745, -705)};
    double x = spread[i % 3];
    exp_worst.see(double_ulps(exp_f64(x), expl(x)), x);
    x = i % 2 != 0 ? exp_f64(between(-740, 709)) : 1.0 + std::ldexp(between(-0.5, 1), -static_cast<int>(random() % 50));
    log_worst.see(double_ulps(log_f64(x), logl(x)), x);
    const double base = i % 2 != 0 ? exp_f64(between(-20, 20)) : between(1e4, 1e7);
    const double e = i % 2 != 0 ? between(-30, 30) : between(-1, 0);
    pow_worst.see(double_ulps(pow_f64(base, e), powl(base, e)), base);
    const double angles[] = {between(-1e7, 1e7), between(-7, 7),
                             static_cast<double>(random() % 6000000) * (std::numbers::pi / 2)};
    x = angles[i % 3];
    double s = 0, c = 0;
    sincos_f64(x, &s, &c);
    trig_worst.see(double_ulps(s, sinl(x)), x);
    trig_worst.see(double_ulps(c, cosl(x)), x);
  }
  RecordProperty("exp_log_pow_sincos_max_ulp", std::to_string(exp_worst.ulps) + " " + std::to_string(log_worst.ulps) +
                                                   " " + std::to_string(pow_worst.ulps) + " " +
                                                   std::to_string(trig_worst.ulps));
  for (const Worst& worst : {exp_worst, log_worst, pow_worst, trig_worst}) EXPECT_LE(worst.ulps, 2.0) << worst.at;
}

TEST(FunctionsF64, Limits) {
  constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(exp_f64(inf), inf);
  EXPECT_EQ(exp_f64(-inf), 0.0);
  EXPECT_EQ(exp_f64(0.0), 1.0);
  EXPECT_EQ(exp_f64(-746.0), 0.0);
  EXPECT_EQ(exp_f64(709.9), inf);
  EXPECT_TRUE(std::isnan(exp_f64(nan)));
  EXPECT_EQ(log_f64(0.0), -inf);
  EXPECT_EQ(log_f64(1.0), 0.0);
  EXPECT_EQ(log_f64(inf), inf);
  EXPECT_TRUE(std::isnan(log_f64(-1.0)));
  EXPECT_TRUE(std::isnan(log_f64(nan)));
  EXPECT_EQ(log_f64(0x1p-1074), static_cast<double>(logl(0x1p-1074L)));
  EXPECT_EQ(pow_f64(10000.0, 0.0), 1.0);
  EXPECT_EQ(pow_f64(2.0, -1074.0), 0x1p-1074);
  EXPECT_EQ(pow_f64(10.0, 400.0), inf);
  EXPECT_EQ(pow_f64(inf, -1.0), 0.0);
  EXPECT_TRUE(std::isnan(pow_f64(nan, 2.0)));
  double s = 1, c = 0;
  sincos_f64(-0.0, &s, &c);
  EXPECT_TRUE(s == 0.0 && std::signbit(s) && c == 1.0);
  sincos_f64(inf, &s, &c);
  EXPECT_TRUE(std::isnan(s) && std::isnan(c));
}

// Their use: angle = position * base^(-2 i / dim), its sine and cosine rounded to float once.
TEST(FunctionsF64, RopeTablesAreRightToAHalfUlp) {
  Worst worst;
  for (const double base : {1e4, 5e5, 1e6})
    for (int i = 0; i < 32; ++i) {
      const long double exact = powl(base, -2.0L * i / 64);
      const double frequency = pow_f64(base, -2.0 * i / 64);
      for (int position = 0; position < 131072; position += 211) {
        double s = 0, c = 0;
        sincos_f64(position * frequency, &s, &c);
        worst.see(float_ulps(static_cast<float>(s), sinl(position * exact)), position);
        worst.see(float_ulps(static_cast<float>(c), cosl(position * exact)), position);
      }
    }
  RecordProperty("max_ulp", std::to_string(worst.ulps));
  EXPECT_LE(worst.ulps, 0.51) << worst.at;
}

}  // namespace
}  // namespace kvasir
