// Storage types against independent rules: every 16-bit pattern, every rounding border, values out of range.
#include "dtype/codec.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace kvasir {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

uint16_t encode_one(const Codec& codec, float x, int64_t* saturated = nullptr) {
  uint16_t bits = 0xdead;
  const int64_t count = codec.encode(&x, reinterpret_cast<std::byte*>(&bits), 1);
  if (saturated != nullptr) *saturated = count;
  return bits;
}

float decode_one(const Codec& codec, uint16_t bits) {
  float x = -777;
  codec.decode(reinterpret_cast<const std::byte*>(&bits), &x, 1);
  return x;
}

// The value of a bit pattern with these numbers of exponent and mantissa bits, by definition.
double value_of(uint16_t bits, int exponent_bits, int mantissa_bits) {
  const int exponent = bits >> mantissa_bits & ((1 << exponent_bits) - 1), mantissa = bits & ((1 << mantissa_bits) - 1);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const double sign = bits >> 15 != 0 ? -1.0 : 1.0;
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
}

struct Narrow {
  const Codec* codec;
  int exponent_bits, mantissa_bits;
  uint16_t infinity() const { return static_cast<uint16_t>(((1 << exponent_bits) - 1) << mantissa_bits); }
};

std::vector<Narrow> narrow_types() { return {{&codec_f16(), 5, 10}, {&codec_bf16(), 8, 7}}; }

TEST(Codec, EveryPatternDecodesToItsValueAndBack) {
  for (const Narrow& type : narrow_types())
    for (uint32_t p = 0; p <= 0xffff; ++p) {
      const uint16_t bits = static_cast<uint16_t>(p), magnitude = bits & 0x7fff;
      const float x = decode_one(*type.codec, bits);
      ASSERT_EQ(std::signbit(x), bits >> 15 != 0) << p;
      if (magnitude > type.infinity()) {
        ASSERT_TRUE(std::isnan(x)) << p;
        ASSERT_TRUE(std::isnan(decode_one(*type.codec, encode_one(*type.codec, x)))) << p;
      } else if (magnitude == type.infinity()) {
        ASSERT_TRUE(std::isinf(x)) << p;
      } else {
        ASSERT_EQ(static_cast<double>(x), value_of(bits, type.exponent_bits, type.mantissa_bits)) << p;
        int64_t saturated = -1;
        ASSERT_EQ(encode_one(*type.codec, x, &saturated), bits) << type.codec->name;
        ASSERT_EQ(saturated, 0);
      }
    }
}

// Between any two neighbours: just below the middle rounds down, just above rounds up, the middle goes to the even
// pattern.
TEST(Codec, RoundsToNearestEvenAtEveryBorder) {
  for (const Narrow& type : narrow_types())
    for (uint16_t p = 0; p + 1 < type.infinity(); ++p) {
      const double low = value_of(p, type.exponent_bits, type.mantissa_bits);
      const double high = value_of(static_cast<uint16_t>(p + 1), type.exponent_bits, type.mantissa_bits);
      const float middle = static_cast<float>((low + high) / 2);
      ASSERT_EQ(static_cast<double>(middle), (low + high) / 2) << "the border is not a float";
      const uint16_t even = static_cast<uint16_t>(p % 2 == 0 ? p : p + 1);
      for (int sign : {0, 0x8000}) {
        const float s = sign != 0 ? -1.0f : 1.0f;
        ASSERT_EQ(encode_one(*type.codec, s * middle), sign | even) << type.codec->name << " " << p;
        ASSERT_EQ(encode_one(*type.codec, s * std::nextafter(middle, 0.0f)), sign | p) << type.codec->name << " " << p;
        ASSERT_EQ(encode_one(*type.codec, s * std::nextafter(middle, kInf)), sign | (p + 1))
            << type.codec->name << " " << p;
      }
    }
}

// Compares floats of every exponent with a search for the nearest value in double.
TEST(Codec, RoundsEveryScaleToTheNearest) {
  for (const Narrow& type : narrow_types()) {
    std::vector<double> values;
    for (uint16_t p = 0; p < type.infinity(); ++p)
      values.push_back(value_of(p, type.exponent_bits, type.mantissa_bits));
    uint32_t state = 12345;
    for (uint32_t exponent = 0; exponent < 255; ++exponent)
      for (int i = 0; i < 40; ++i) {
        state = state * 1664525 + 1013904223;
        const float x = std::bit_cast<float>(exponent << 23 | state >> 9);
        const double want = static_cast<double>(x);
        if (want > values.back()) continue;
        const auto above = std::lower_bound(values.begin(), values.end(), want);
        const double best = above == values.begin() || *above - want < want - *(above - 1) ? *above : *(above - 1);
        if (above != values.begin() && *above - want == want - *(above - 1))
          continue;  // a border, covered by the test before
        ASSERT_EQ(static_cast<double>(decode_one(*type.codec, encode_one(*type.codec, x))), best)
            << type.codec->name << x;
      }
  }
}

TEST(Codec, F16SaturatesAndCounts) {
  struct Case {
    float x;
    uint16_t bits;
    int64_t saturated;
  };
  const Case cases[] = {{65504.0f, 0x7bff, 0},  {std::nextafter(65504.0f, kInf), 0x7bff, 1},
                        {65519.0f, 0x7bff, 1},  {65520.0f, 0x7bff, 1},
                        {1e30f, 0x7bff, 1},     {kInf, 0x7bff, 1},
                        {-65504.0f, 0xfbff, 0}, {-65505.0f, 0xfbff, 1},
                        {-kInf, 0xfbff, 1},     {65503.0f, 0x7bff, 0},
                        {65487.0f, 0x7bfe, 0}};
  for (const Case& c : cases) {
    int64_t saturated = -1;
    EXPECT_EQ(encode_one(codec_f16(), c.x, &saturated), c.bits) << c.x;
    EXPECT_EQ(saturated, c.saturated) << c.x;
  }
  const std::vector<float> row = {1, 70000, -70000, 2, kInf, 65504, 0, -1e38f};
  std::vector<std::byte> bytes(codec_f16().row_bytes(8));
  EXPECT_EQ(codec_f16().encode(row.data(), bytes.data(), 8), 4);
}

TEST(Codec, Bf16CountsWhatRoundsToInfinity) {
  const float largest = std::bit_cast<float>(0x7f7f0000u), border = std::bit_cast<float>(0x7f7f8000u);
  int64_t saturated = -1;
  EXPECT_EQ(encode_one(codec_bf16(), largest, &saturated), 0x7f7f);
  EXPECT_EQ(saturated, 0);
  EXPECT_EQ(encode_one(codec_bf16(), std::nextafter(border, 0.0f), &saturated), 0x7f7f);
  EXPECT_EQ(saturated, 0);
  EXPECT_EQ(encode_one(codec_bf16(), -border, &saturated), 0xff80);
  EXPECT_EQ(saturated, 1);
  EXPECT_EQ(encode_one(codec_bf16(), kInf, &saturated), 0x7f80);
  EXPECT_EQ(saturated, 0) << "infinity is held";
}

TEST(Codec, NanStaysNan) {
  for (uint32_t payload : {0x7f800001u, 0x7fc00000u, 0x7fffffffu, 0xff800001u, 0xffbfffffu, 0x7f80ffffu})
    for (const Codec* codec : {&codec_f32(), &codec_f16(), &codec_bf16()}) {
      const float x = std::bit_cast<float>(payload);
      std::byte row[8];
      float back = 0;
      EXPECT_EQ(codec->encode(&x, row, 1), 0) << codec->name;
      codec->decode(row, &back, 1);
      EXPECT_TRUE(std::isnan(back)) << codec->name;
      EXPECT_EQ(std::signbit(back), payload >> 31 != 0) << codec->name;
    }
}

TEST(Codec, F32KeepsEveryBit) {
  std::vector<float> row;
  for (uint32_t i = 0; i < 1000; ++i) row.push_back(std::bit_cast<float>(i * 4294967u));
  std::vector<std::byte> bytes(codec_f32().row_bytes(1000));
  std::vector<float> back(1000);
  EXPECT_EQ(codec_f32().encode(row.data(), bytes.data(), 1000), 0);
  codec_f32().decode(bytes.data(), back.data(), 1000);
  EXPECT_EQ(std::memcmp(back.data(), row.data(), 4000), 0);
}

// Rows inside files may begin at any address.
TEST(Codec, RowsNeedNoAlignment) {
  for (const Codec* codec : codecs()) {
    const int64_t n = codec->block_elems * 5;
    std::vector<float> row, back(static_cast<size_t>(n)), expected(static_cast<size_t>(n)),
        ones(static_cast<size_t>(n), 1.0f);
    for (int64_t i = 0; i < n; ++i) row.push_back(0.37f * static_cast<float>(i + 1));
    std::vector<std::byte> bytes(codec->row_bytes(n) + 1), aligned(codec->row_bytes(n));
    for (size_t i = 0; i < aligned.size(); ++i) aligned[i] = static_cast<std::byte>(i * 37 % 59);
    if (codec->encode == nullptr) std::copy(aligned.begin(), aligned.end(), bytes.begin() + 1);
    if (codec->encode != nullptr) {
      codec->encode(row.data(), bytes.data() + 1, n);
      codec->encode(row.data(), aligned.data(), n);
    }
    EXPECT_EQ(std::memcmp(bytes.data() + 1, aligned.data(), aligned.size()), 0) << codec->name;
    codec->decode(bytes.data() + 1, back.data(), n);
    codec->decode(aligned.data(), expected.data(), n);
    EXPECT_EQ(back, expected) << codec->name;
    std::vector<ActBlock> act(static_cast<size_t>(n / kActElems + 1));
    if (codec->act == Act::q8) encode_act(ones.data(), act.data(), n);
    const auto* operand =
        reinterpret_cast<const std::byte*>(codec->act == Act::q8 ? static_cast<const void*>(act.data()) : ones.data());
    EXPECT_EQ(codec->dot(bytes.data() + 1, operand, n), codec->dot(aligned.data(), operand, n)) << codec->name;
  }
}

TEST(Codec, RowBytesCountWholeBlocks) {
  EXPECT_EQ(codec_f32().row_bytes(7), 28u);
  EXPECT_EQ(codec_f16().row_bytes(7), 14u);
  EXPECT_EQ(codec_bf16().row_bytes(7), 14u);
  EXPECT_EQ(codec_f32().row_bytes(0), 0u);
  const Codec blocks{"q", "Q", "", 32, 34, Act::q8, RowForm::other, nullptr, nullptr, nullptr, nullptr};
  EXPECT_EQ(blocks.row_bytes(1), 34u);
  EXPECT_EQ(blocks.row_bytes(32), 34u);
  EXPECT_EQ(blocks.row_bytes(33), 68u);
  EXPECT_EQ(codec_f32().row_bytes(int64_t{1} << 33), size_t{1} << 35);
}

TEST(Codec, FoundByBothNames) {
  std::set<std::string> names;
  for (const Codec* codec : codecs()) {
    EXPECT_EQ(find_codec(codec->name), codec);
    EXPECT_EQ(find_codec(codec->file_name), codec);
    names.insert(codec->name);
    names.insert(codec->file_name);
  }
  EXPECT_EQ(names.size(), 2 * codecs().size());
  EXPECT_EQ(find_codec("f16"), &codec_f16());
  EXPECT_EQ(find_codec("BF16"), &codec_bf16());
  EXPECT_EQ(find_codec("F32"), &codec_f32());
  for (const char* unknown : {"", "f64", "F", "f16 ", "bF16", "I32"})
    EXPECT_EQ(find_codec(unknown), nullptr) << unknown;
}

}  // namespace
}  // namespace kvasir
