// Integer weights: every kernel table against the codec's dot in bits, for every integer type of the build; and the
// rounding of activations. Weights are random bytes, so every pattern of a stored block occurs.
#include <cmath>
#include <cstring>
#include <limits>

#include "dtype/codec.h"
#include "tests/support/kernel_inputs.h"

namespace kvasir {
namespace {

using math_test::GuardedBytes;
using math_test::Random;
using math_test::same_floats;
using math_test::simd_tables;

std::vector<const Codec*> integer_codecs() {
  std::vector<const Codec*> out;
  for (const Codec* codec : codecs())
    if (codec->act == Act::q8) out.push_back(codec);
  return out;
}

/// One product; weights and activations end at unmapped pages.
class IntegerProduct {
 public:
  IntegerProduct(const Codec& codec, bool extremes, Random& random)
      : rows_(random.pick({1, 15, 16, 17, 31, 33, 64, 70})),
        cols_(std::max(codec.block_elems, kActElems) * random.between(1, 5)),
        tokens_(random.one_in(2) ? random.between(1, 5) : random.between(6, 21)),
        y_stride_(rows_ + random.pick({0, 1, 16})),
        row_bytes_(codec.row_bytes(cols_) + static_cast<size_t>(random.pick({0, 0, 4, 30}))),
        weights_(static_cast<size_t>(rows_) * row_bytes_),
        acts_(static_cast<size_t>(tokens_ * (cols_ / kActElems)) * sizeof(ActBlock)),
        bias_(random.floats(static_cast<size_t>(rows_), extremes)) {
    for (size_t i = 0; i < static_cast<size_t>(rows_) * row_bytes_; ++i)
      weights_.data()[i] = static_cast<std::byte>(random.next());
    if (!extremes) make_finite(codec);
    const std::vector<float> x = random.floats(static_cast<size_t>(tokens_ * cols_), extremes);
    encode_act(x.data(), acts(), static_cast<int64_t>(x.size()));
    args_.w = weights_.data();
    args_.row_bytes = row_bytes_;
    args_.form = codec.form;
    args_.decode = codec.decode;
    args_.dot = codec.dot;
    args_.block_elems = codec.block_elems;
    args_.block_bytes = codec.block_bytes;
    args_.rows = rows_;
    args_.cols = cols_;
    args_.act = acts();
    args_.y_stride = y_stride_;
    args_.tokens = tokens_;
    args_.bias = random.one_in(2) ? bias_.floats() : nullptr;
    if (random.one_in(2)) args_.row_begin = random.between(0, static_cast<int>(rows_) - 1);
    args_.row_end =
        random.one_in(2) ? rows_ : random.between(static_cast<int>(args_.row_begin), static_cast<int>(rows_));
  }

  /// [tokens, y_stride]; elements that the kernel must not write hold 777.
  std::vector<float> run(const Kernels& kernels) const {
    std::vector<float> y(static_cast<size_t>(tokens_ * y_stride_), 777.0f),
        panel(static_cast<size_t>(kPanelRows * cols_));
    MatmulArgs args = args_;
    args.y = y.data();
    args.panel = panel.data();
    const math_test::Arranged arranged(kernels, args);
    args.arranged = arranged.data();
    kernels.integer.matmul(args);
    return y;
  }
  std::vector<float> expected() const {
    std::vector<float> y(static_cast<size_t>(tokens_ * y_stride_), 777.0f);
    for (int t = 0; t < tokens_; ++t)
      for (int64_t r = args_.row_begin; r < args_.row_end; ++r) {
        const auto* x = reinterpret_cast<const std::byte*>(acts() + t * (cols_ / kActElems));
        const float dot = args_.dot(args_.w + static_cast<size_t>(r) * row_bytes_, x, cols_);
        y[static_cast<size_t>(t * y_stride_ + r)] = args_.bias != nullptr ? dot + args_.bias[r] : dot;
      }
    return y;
  }
  std::string text() const {
    return std::to_string(rows_) + "x" + std::to_string(cols_) + ", " + std::to_string(tokens_) + " tokens, rows " +
           std::to_string(args_.row_begin) + ".." + std::to_string(args_.row_end);
  }

 private:
  ActBlock* acts() const { return reinterpret_cast<ActBlock*>(acts_.data()); }

  // Gives every 16-bit word that could be read as infinity or NaN a smaller exponent.
  void make_finite(const Codec& codec) {
    for (int64_t r = 0; r < rows_; ++r)
      for (size_t b = 0; b + 1 < codec.row_bytes(cols_); ++b) {
        std::byte* high = weights_.data() + static_cast<size_t>(r) * row_bytes_ + b + 1;
        if ((*high & std::byte{0x7c}) == std::byte{0x7c}) *high &= std::byte{0xbf};
      }
  }

  int64_t rows_, cols_;
  int tokens_;
  int64_t y_stride_;
  size_t row_bytes_;
  GuardedBytes weights_, acts_, bias_;
  MatmulArgs args_;
};

TEST(KernelsInteger, EveryTableEqualsTheCodecsDotInBits) {
  Random random(21);
  std::vector<const Kernels*> tables = simd_tables();
  tables.push_back(&kScalarKernels);
  for (const Codec* codec : integer_codecs())
    for (int i = 0; i < 60; ++i) {
      const IntegerProduct product(*codec, i % 3 == 0, random);
      const std::vector<float> expected = product.expected();
      for (const Kernels* table : tables)
        ASSERT_TRUE(same_floats(product.run(*table), expected))
            << table->name << ", " << codec->name << ": " << product.text();
    }
}

TEST(KernelsInteger, TheLargestSumsAreExact) {
  // All weights and activations at their extremes: sums that would overflow 16 bits, or a float's 24 bits.
  for (const Codec* codec : integer_codecs())
    for (const unsigned fill : {0x00u, 0x7fu, 0x80u, 0xffu}) {
      const int64_t cols = std::max(codec->block_elems, kActElems), acts = cols / kActElems;
      std::vector<std::byte> row(codec->row_bytes(cols) * 16, static_cast<std::byte>(fill));
      for (const float x : {1.0f, -1.0f}) {
        const std::vector<float> values(static_cast<size_t>(cols), x);
        std::vector<ActBlock> act(static_cast<size_t>(acts));
        encode_act(values.data(), act.data(), cols);
        MatmulArgs args;
        args.w = row.data();
        args.row_bytes = codec->row_bytes(cols);
        args.form = codec->form;
        args.dot = codec->dot;
        args.rows = args.row_end = 16;
        args.cols = cols;
        args.act = act.data();
        args.tokens = 1;
        args.y_stride = 16;
        const float expected = codec->dot(row.data(), reinterpret_cast<const std::byte*>(act.data()), cols);
        for (const Kernels* table : simd_tables()) {
          std::vector<float> y(16), panel(static_cast<size_t>(kPanelRows * cols));
          args.y = y.data();
          args.panel = panel.data();
          const math_test::Arranged arranged(*table, args);
          args.arranged = arranged.data();
          table->integer.matmul(args);
          ASSERT_TRUE(same_floats(y, std::vector<float>(16, expected)))
              << table->name << " " << codec->name << " " << fill;
        }
      }
    }
}

TEST(KernelsInteger, EveryTableEncodesActivationsAsTheDefinitionDoes) {
  Random random(22);
  constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
  for (int i = 0; i < 3000; ++i) {
    std::vector<float> x = random.floats(64, i % 2 == 0);
    if (i % 7 == 0) x[static_cast<size_t>(random.between(0, 63))] = random.pick({kInf, -kInf, kNan, -kNan});
    if (i % 5 == 0)  // multiples of half a step: ties go to even
      for (float& v : x) v = static_cast<float>(random.between(-254, 254)) * 0.5f;
    if (i % 11 == 0)
      for (float& v : x) v *= 0x1p-140f;
    const GuardedBytes guarded(x);
    ActBlock expected[2];
    encode_act(x.data(), expected, 64);
    for (const Kernels* table : simd_tables()) {
      ActBlock got[2];
      table->integer.encode_act(guarded.floats(), got, 64);
      for (int b = 0; b < 2; ++b) {
        ASSERT_TRUE(math_test::same(got[b].d, expected[b].d)) << table->name << " " << i;
        ASSERT_EQ(got[b].sum, expected[b].sum) << table->name << " " << i;
        ASSERT_EQ(got[b].first, expected[b].first) << table->name << " " << i;
        ASSERT_EQ(std::memcmp(got[b].q, expected[b].q, sizeof got[b].q), 0) << table->name << " " << i;
      }
    }
  }
}

}  // namespace
}  // namespace kvasir
