// mxfp4 and iq4_nl against their definitions: the values of four bits, the scales, the product, and encoding.
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

struct Format {
  const char* name;
  int bytes, first;  // bytes of a block; offset of its nibbles
  double (*number)(int bits);
  double (*scale)(const std::byte* block);
};

double power_of_two(const std::byte* block) { return std::ldexp(1.0, std::to_integer<int>(block[0]) - 127); }
double half(const std::byte* block) {
  float value;
  codec_f16().decode(block, &value, 1);
  return static_cast<double>(value);
}
double non_linear(int bits) {
  constexpr int kNumbers[] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
  return kNumbers[bits];
}

class Table16 : public testing::TestWithParam<Format> {
 protected:
  const Codec& codec() const { return *find_codec(GetParam().name); }
  double value(const Bytes& row, int i) const {
    const std::byte* block = row.data() + i / 32 * GetParam().bytes;
    const int e = i % 32, byte = std::to_integer<int>(block[GetParam().first + e % 16]);
    return GetParam().scale(block) * GetParam().number(e < 16 ? byte & 15 : byte >> 4);
  }
  // Scales are from 2^-20 to 2^20 (mxfp4), or f16 below 8 (iq4_nl).
  Bytes random_row(int blocks) {
    Bytes row(static_cast<size_t>(blocks * GetParam().bytes));
    for (std::byte& b : row) b = static_cast<std::byte>(random_() & 255);
    for (int i = 0; i < blocks; ++i) {
      std::byte& scale = row[static_cast<size_t>(i * GetParam().bytes + GetParam().first - 1)];
      scale = GetParam().first == 1 ? static_cast<std::byte>(107 + random_() % 40) : scale & std::byte{0xbf};
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

INSTANTIATE_TEST_SUITE_P(Types, Table16,
                         testing::Values(Format{"mxfp4", 17, 1, float_of_4_bits, power_of_two},
                                         Format{"iq4_nl", 18, 2, non_linear, half}),
                         [](const auto& type) { return std::string(type.param.name); });

TEST_P(Table16, HasGgmlsSizes) {
  EXPECT_EQ(codec().block_elems, 32);
  EXPECT_EQ(codec().block_bytes, GetParam().bytes);
}

TEST_P(Table16, DecodesAnyBytes) {
  const Bytes row = random_row(40);
  const std::vector<float> got = decode(row, 40 * 32);
  for (int i = 0; i < 40 * 32; ++i) ASSERT_EQ(got[static_cast<size_t>(i)], static_cast<float>(value(row, i))) << i;
}

TEST_P(Table16, DotIsTheSumOverWholeNumbers) {
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
TEST_P(Table16, EncodesToTheNearest) {
  std::normal_distribution<float> normal;
  std::vector<float> x;
  for (int i = 0; i < 40 * 32; ++i) x.push_back(normal(random_) * std::exp2(static_cast<float>(i / 32 % 11 - 5)));
  const Bytes row = encode(x);
  double squares = 0, size = 0;
  for (int i = 0; i < 40 * 32; ++i) {
    const double v = static_cast<double>(x[static_cast<size_t>(i)]),
                 scale = GetParam().scale(row.data() + i / 32 * GetParam().bytes);
    double least = std::numeric_limits<double>::infinity();
    for (int bits = 0; bits < 16; ++bits) least = std::min(least, std::fabs(scale * GetParam().number(bits) - v));
    ASSERT_LE(std::fabs(value(row, i) - v), least * (1 + 1e-5)) << i;
    squares += (value(row, i) - v) * (value(row, i) - v), size += v * v;
  }
  EXPECT_LT(std::sqrt(squares / size), GetParam().first == 1 ? 0.14 : 0.085);
}

TEST_P(Table16, ZerosAndWhatIsNotFinite) {
  for (const float v : decode(encode(std::vector<float>(32, 0.0f)), 32)) EXPECT_EQ(v, 0.0f);
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    std::vector<float> x(64, 1.0f);
    x[40] = bad;
    const std::vector<float> back = decode(encode(x), 64);
    for (size_t i = 0; i < 64; ++i) ASSERT_EQ(std::isnan(back[i]), i >= 32) << i;
  }
}

TEST(Mxfp4, ScalesOfEveryExponent) {
  const Codec& codec = *find_codec("mxfp4");
  for (int exponent = 0; exponent < 256; ++exponent) {
    Bytes row(17, std::byte{0x77});  // 6 everywhere
    row[0] = static_cast<std::byte>(exponent);
    float out[32];
    codec.decode(row.data(), out, 32);
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
