// mxfp4 against its definition: the values of four bits, the scales, the product, and encoding.
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dtype/codec.h"

namespace kvasir {
namespace {

using Bytes = std::vector<std::byte>;

// E2M1: a sign bit, two exponent bits with bias 1, one fraction bit.
double float_of_4_bits(int bits) {
  const int exponent = bits >> 1 & 3, fraction = bits & 1;
  const double magnitude = exponent == 0 ? 0.5 * fraction : std::ldexp(1 + 0.5 * fraction, exponent - 1);
  return bits >= 8 ? -magnitude : magnitude;
}

constexpr int kBytes = 17;  // of a block: a power of two, then the nibbles

double power_of_two(const std::byte* block) { return std::ldexp(1.0, std::to_integer<int>(block[0]) - 127); }

class Mxfp4 : public testing::Test {
 protected:
  const Codec& codec() const { return *find_codec("mxfp4"); }
  double value(const Bytes& row, int i) const {
    const std::byte* block = row.data() + i / 32 * kBytes;
    const int e = i % 32, byte = std::to_integer<int>(block[1 + e % 16]);
    return power_of_two(block) * float_of_4_bits(e < 16 ? byte & 15 : byte >> 4);
  }
  // Scales are from 2^-20 to 2^20.
  Bytes random_row(int blocks) {
    Bytes row(static_cast<size_t>(blocks * kBytes));
    for (std::byte& b : row) b = static_cast<std::byte>(random_() & 255);
    for (int i = 0; i < blocks; ++i) {
      row[static_cast<size_t>(i * kBytes)] = static_cast<std::byte>(107 + random_() % 40);
    }
    return row;
  }
  std::vector<float> decode(const Bytes& row, int n) const {
    std::vector<float> out(static_cast<size_t>(n));
    codec().decode(row.data(), out.data(), n);
    return out;
  }
  Bytes encode(const std::vector<float>& x) const {
    Bytes row(codec().row_bytes(static_cast<int64_t>(x.size())));
    codec().encode(x.data(), row.data(), static_cast<int64_t>(x.size()));
    return row;
  }
  std::mt19937 random_{20261201};
};

TEST_F(Mxfp4, HasGgmlsSizes) {
  EXPECT_EQ(codec().block_elems, 32);
  EXPECT_EQ(codec().block_bytes, kBytes);
}

TEST_F(Mxfp4, DecodesAnyBytes) {
  const Bytes row = random_row(40);
  const std::vector<float> got = decode(row, 40 * 32);
  for (int i = 0; i < 40 * 32; ++i) ASSERT_EQ(got[static_cast<size_t>(i)], static_cast<float>(value(row, i))) << i;
}

TEST_F(Mxfp4, DotIsTheSumOverWholeNumbers) {
  const Bytes row = random_row(8);
  std::vector<float> x;
  for (int i = 0; i < 256; ++i) x.push_back(static_cast<float>(random_() % 2001) / 1000 - 1);
  std::vector<ActBlock> act(8);
  encode_act(x.data(), act.data(), 256);
  double exact = 0, size = 0;
  for (int i = 0; i < 256; ++i) {
    const ActBlock& a = act[static_cast<size_t>(i / 32)];
    const double product = value(row, i) * static_cast<double>(a.d) * a.q[i % 32];
    exact += product, size += std::fabs(product);
  }
  EXPECT_NEAR(codec().dot(row.data(), reinterpret_cast<const std::byte*>(act.data()), 256), exact, 1e-6 * size);
}

// With the stored scale, no other number is nearer.
TEST_F(Mxfp4, EncodesToTheNearest) {
  std::normal_distribution<float> normal;
  std::vector<float> x;
  for (int i = 0; i < 40 * 32; ++i) x.push_back(normal(random_) * std::exp2(static_cast<float>(i / 32 % 11 - 5)));
  const Bytes row = encode(x);
  double squares = 0, size = 0;
  for (int i = 0; i < 40 * 32; ++i) {
    const double v = static_cast<double>(x[static_cast<size_t>(i)]), scale = power_of_two(row.data() + i / 32 * kBytes);
    double least = std::numeric_limits<double>::infinity();
    for (int bits = 0; bits < 16; ++bits) least = std::min(least, std::fabs(scale * float_of_4_bits(bits) - v));
    ASSERT_LE(std::fabs(value(row, i) - v), least * (1 + 1e-5)) << i;
    squares += (value(row, i) - v) * (value(row, i) - v), size += v * v;
  }
  EXPECT_LT(std::sqrt(squares / size), 0.14);
}

TEST_F(Mxfp4, ZerosAndWhatIsNotFinite) {
  for (const float v : decode(encode(std::vector<float>(32, 0.0f)), 32)) EXPECT_EQ(v, 0.0f);
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    std::vector<float> x(64, 1.0f);
    x[40] = bad;
    const std::vector<float> back = decode(encode(x), 64);
    for (size_t i = 0; i < 64; ++i) ASSERT_EQ(std::isnan(back[i]), i >= 32) << i;
  }
}

TEST_F(Mxfp4, ScalesOfEveryExponent) {
  for (int exponent = 0; exponent < 256; ++exponent) {
    Bytes row(17, std::byte{0x77});  // 6 everywhere
    row[0] = static_cast<std::byte>(exponent);
    float out[32];
    codec().decode(row.data(), out, 32);
    if (exponent == 255)
      EXPECT_TRUE(std::isnan(out[0]));
    else
      EXPECT_EQ(static_cast<double>(out[31]),
                std::ldexp(6.0, exponent - 127) > 3.5e38 ? HUGE_VAL : std::ldexp(6.0, exponent - 127))
          << exponent;
  }
}

}  // namespace
}  // namespace kvasir
