// The scale search for K and V, compared with a search in double that shares no code with it.
#include "dtype/closest_scale.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace kvasir {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();
constexpr int kElems = 32;
using Block = std::array<float, kElems>;

struct Case {
  const char* type;
  double most, first, step;
};
constexpr Case kCases[] = {{"q8_0", 128, 128, 0.5}, {"q4_0", 8, 9, 0.25}};

Block decoded(const Codec& codec, const std::byte* row) {
  Block back{};
  codec.decode(row, back.data(), kElems);
  return back;
}

double loss(const Block& a, const Block& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i)
    sum += (static_cast<double>(a[i]) - static_cast<double>(b[i])) *
           (static_cast<double>(a[i]) - static_cast<double>(b[i]));
  return sum;
}

double stored_loss(const Codec& codec, const Block& x, decltype(Codec::encode) encode, int64_t saturated = 0) {
  std::vector<std::byte> row(static_cast<size_t>(codec.block_bytes));
  EXPECT_EQ(encode(x.data(), row.data(), kElems), saturated);
  return loss(x, decoded(codec, row.data()));
}

// The loss with a scale of extreme / steps, in double except for rounding the scale to f16.
double scale_loss(const Case& c, const Block& x, double steps) {
  double extreme = 0, sum = 0;
  for (const float v : x)
    if (std::fabs(static_cast<double>(v)) > std::fabs(extreme)) extreme = static_cast<double>(v);
  std::byte half[2];
  codec_f16().encode(std::array{static_cast<float>(extreme / steps)}.data(), half, 1);
  float d = 0;
  codec_f16().decode(half, &d, 1);
  for (const float v : x) {
    const double w = std::clamp(std::nearbyint(static_cast<double>(v) / static_cast<double>(d)), -c.most, c.most - 1);
    sum += std::pow(static_cast<double>(v) - w * static_cast<double>(d), 2);
  }
  return sum;
}

// The least loss of 16 scales.
double least_loss(const Case& c, const Block& x) {
  double least = std::numeric_limits<double>::infinity();
  for (int t = 0; t < 16; ++t) least = std::min(least, scale_loss(c, x, c.step * t - c.first));
  return least;
}

// Values of many magnitudes. Some blocks have a few large values; some are partly filled, as heads of 8 channels are.
Block random_block(std::mt19937& random, int round) {
  std::normal_distribution<float> normal;
  Block x{};
  const int filled = round % 3 == 0 ? 8 : kElems;
  const float size = std::ldexp(1.0f, round % 13 - 6);
  for (int i = 0; i < filled; ++i) {
    const float value = normal(random) * (i == 5 && round % 2 == 0 ? 20.0f : 1.0f);
    x[static_cast<size_t>(i)] = size * value;
  }
  return x;
}

TEST(ClosestScale, IsTheOneThatLosesLeast) {
  for (const Case& c : kCases) {
    const Codec& codec = *find_codec(c.type);
    std::mt19937 random(7);
    double plain = 0, closest = 0;
    for (int round = 0; round < 1000; ++round) {
      const Block x = random_block(random, round);
      const double size = loss(x, Block{}), got = stored_loss(codec, x, codec.encode_kv) / size;
      ASSERT_LE(got, least_loss(c, x) / size * (1 + 1e-5) + 1e-12) << c.type << " " << round;
      ASSERT_GE(got, least_loss(c, x) / size * (1 - 1e-5) - 1e-12) << c.type << " " << round;
      plain += scale_loss(c, x, -c.most) / size, closest += got;
    }
    EXPECT_LT(closest, plain * 0.95) << c.type;
  }
}

TEST(ClosestScale, WholeNumbersUseTheWholeRange) {
  Block x{};
  for (int i = 0; i < kElems; ++i) x[static_cast<size_t>(i)] = static_cast<float>(i % 16 - 8);
  const Codec& codec = *find_codec("q4_0");
  EXPECT_EQ(stored_loss(codec, x, codec.encode_kv), 0) << "-8..7 in steps of 1";
}

TEST(ClosestScale, ZerosTinyAndHugeNumbers) {
  for (const Case& c : kCases) {
    const Codec& codec = *find_codec(c.type);
    for (const float value : {0.0f, -0.0f, 1e-30f, -1e-12f}) {
      Block x;
      x.fill(value);
      EXPECT_LE(stored_loss(codec, x, codec.encode_kv), 1e-10) << c.type << " " << value;
    }
    Block huge{};
    huge[3] = -3e38f, huge[9] = 1e30f;
    std::vector<std::byte> row(static_cast<size_t>(codec.block_bytes));
    EXPECT_EQ(codec.encode_kv(huge.data(), row.data(), kElems), 1) << c.type;
    EXPECT_FLOAT_EQ(decoded(codec, row.data())[3], static_cast<float>(-c.most * 65504));
    EXPECT_FLOAT_EQ(decoded(codec, row.data())[9], static_cast<float>((c.most - 1) * 65504));
    EXPECT_EQ(decoded(codec, row.data())[0], 0);
  }
}

TEST(ClosestScale, ShowsWhatIsNotFinite) {
  for (const Case& c : kCases)
    for (const float bad : {kNaN, kInf, -kInf}) {
      const Codec& codec = *find_codec(c.type);
      Block x{1, 2, 3};
      x[17] = bad;
      std::vector<std::byte> row(static_cast<size_t>(codec.block_bytes));
      EXPECT_EQ(codec.encode_kv(x.data(), row.data(), kElems), 0);
      for (const float v : decoded(codec, row.data())) EXPECT_TRUE(std::isnan(v)) << c.type;
    }
}

}  // namespace
}  // namespace kvasir
