// Every kernel table against the scalar one in bits, and the scalar one against the formulas in double: products,
// norms, rotations, activations. kernels_attend_test.cc tests attention.
#include "math/kernels.h"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>

#include "tests/support/kernel_inputs.h"

namespace kvasir {
namespace {

using math_test::close;
using math_test::GuardedBytes;
using math_test::Random;
using math_test::same_floats;
using math_test::simd_tables;

// ---- a storage type only for this test: 8 channels per block, a float scale and 8 signed bytes ------------------

constexpr int kBlock = 8;

void decode_blocks(const std::byte* src, float* dst, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const std::byte* block = src + i / kBlock * 12;
    float scale;
    std::memcpy(&scale, block, sizeof scale);
    dst[i] = scale * static_cast<float>(static_cast<int8_t>(block[4 + i % kBlock]));
  }
}

int64_t encode_blocks(const float* src, std::byte* dst, int64_t n) {
  for (int64_t b = 0; b < n / kBlock; ++b) {
    float most = 0;
    for (int i = 0; i < kBlock; ++i) most = std::max(most, std::fabs(src[b * kBlock + i]));
    const float scale = most > 0 ? most / 127.0f : 1.0f;
    std::memcpy(dst + b * 12, &scale, sizeof scale);
    for (int i = 0; i < kBlock; ++i)
      dst[b * 12 + 4 + i] = static_cast<std::byte>(static_cast<int8_t>(std::lround(src[b * kBlock + i] / scale)));
  }
  return 0;
}

constexpr Codec kBlocks{"blocks8",      "BLOCKS8",     "",      kBlock,        12,     Act::f32,
                        RowForm::other, encode_blocks, nullptr, decode_blocks, nullptr};

// ---- products ---------------------------------------------------------------------------------------------------

struct Form {
  const char* name;
  const Codec* codec;
  RowForm form;
};

std::array<Form, 5> forms() {
  return {{{"f32", &codec_f32(), RowForm::f32},
           {"f16", &codec_f16(), RowForm::f16},
           {"bf16", &codec_bf16(), RowForm::bf16},
           {"f16 by decode", &codec_f16(), RowForm::other},
           {"blocks by decode", &kBlocks, RowForm::other}}};
}

// One product with all its memory; weights, inputs and bias end at unmapped pages.
class Product {
 public:
  Product(const Form& form, bool conv1d, bool extremes, Random& random)
      : rows_(random.one_in(3) ? random.between(1, 97) : random.pick({1, 15, 17, 31, 33, 47, 63, 65, 96})),
        cols_(random.one_in(3) ? random.between(1, 97) : random.pick({1, 3, 16, 31, 33, 49, 80, 97, 200})),
        tokens_(random.one_in(8) ? 40 : random.between(1, 13)),
        stored_cols_(conv1d ? rows_ : cols_),
        x_stride_(cols_ + random.pick({0, 0, 1, 16, 37})),
        y_stride_(rows_ + random.pick({0, 0, 1, 16, 37})),
        row_bytes_(form.codec->row_bytes(stored_cols_) + static_cast<size_t>(random.pick({0, 0, 4, 64}))),
        weights_(stored_rows(conv1d) * row_bytes_, form.form == RowForm::f32 ? random.pick<size_t>({0, 0, 1, 2}) : 0),
        x_(random.floats(static_cast<size_t>((tokens_ - 1) * x_stride_ + cols_), extremes)),
        bias_(random.floats(static_cast<size_t>(rows_), extremes)) {
    store_weights(form, conv1d, extremes, random);
    args_.w = weights_.data();
    args_.row_bytes = row_bytes_;
    args_.form = form.form;
    args_.conv1d = conv1d;
    args_.decode = form.codec->decode;
    args_.block_elems = form.codec->block_elems;
    args_.block_bytes = form.codec->block_bytes;
    args_.rows = rows_;
    args_.cols = cols_;
    args_.x = x_.floats();
    args_.x_stride = x_stride_;
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
    kernels.matmul(args);
    return y;
  }
  const MatmulArgs& args() const { return args_; }
  /// w[r][k] as the codec decodes it.
  float weight(int64_t r, int64_t k) const { return decoded_[static_cast<size_t>(r * cols_ + k)]; }
  std::string text() const {
    return std::to_string(rows_) + "x" + std::to_string(cols_) + ", " + std::to_string(tokens_) + " tokens, rows " +
           std::to_string(args_.row_begin) + ".." + std::to_string(args_.row_end) + (args_.conv1d ? ", conv1d" : "");
  }

 private:
  size_t stored_rows(bool conv1d) const { return static_cast<size_t>(conv1d ? cols_ : rows_); }

  void store_weights(const Form& form, bool conv1d, bool extremes, Random& random) {
    const int block = form.codec->block_elems;
    const size_t padded = static_cast<size_t>((stored_cols_ + block - 1) / block * block);
    decoded_.resize(static_cast<size_t>(rows_ * cols_));
    std::vector<float> back(padded);
    for (size_t s = 0; s < stored_rows(conv1d); ++s) {
      std::byte* at = weights_.data() + s * row_bytes_;
      form.codec->encode(random.floats(padded, extremes).data(), at, static_cast<int64_t>(padded));
      form.codec->decode(at, back.data(), static_cast<int64_t>(padded));
      for (int64_t c = 0; c < stored_cols_; ++c) {
        const int64_t r = conv1d ? c : static_cast<int64_t>(s), k = conv1d ? static_cast<int64_t>(s) : c;
        decoded_[static_cast<size_t>(r * cols_ + k)] = back[static_cast<size_t>(c)];
      }
    }
  }

  int64_t rows_, cols_;
  int tokens_;
  int64_t stored_cols_, x_stride_, y_stride_;
  size_t row_bytes_;
  GuardedBytes weights_, x_, bias_;
  std::vector<float> decoded_;
  MatmulArgs args_;
};

// An independent definition: lane l takes elements l, l+16, ...; the fold is a tree of pairs.
float dot_by_hand(int64_t n, const std::function<float(int64_t)>& w, const float* x) {
  std::array<float, 16> lane{};
  for (size_t l = 0; l < 16; ++l)
    for (int64_t i = static_cast<int64_t>(l); i < n; i += 16) lane[l] = std::fma(w(i), x[i], lane[l]);
  const auto two = [&](size_t l) { return lane[l] + lane[l + 8]; };
  const auto four = [&](size_t l) { return two(l) + two(l + 4); };
  return (four(0) + four(2)) + (four(1) + four(3));
}

TEST(KernelsMatmul, EveryTableEqualsTheScalarOneInBits) {
  Random random(1);
  for (const Form& form : forms())
    for (int i = 0; i < 160; ++i) {
      const Product product(form, i % 2 == 0, i % 3 == 0, random);
      const std::vector<float> expected = product.run(kScalarKernels);
      for (const Kernels* table : simd_tables())
        ASSERT_TRUE(same_floats(product.run(*table), expected))
            << table->name << ", " << form.name << ": " << product.text();
    }
}

// More tokens than are multiplied together at this width, by more rows than fit the level-1 cache's share.
TEST(KernelsMatmul, ManyTokensByManyRows) {
  Random random(9);
  const int64_t cols = 1552, rows = 75;
  for (const Codec* codec : {&codec_f32(), &codec_f16(), &codec_bf16()})
    for (const int tokens : {5, 6, 16, 63, 64, 65, 129}) {
      std::vector<std::byte> w(static_cast<size_t>(rows) * codec->row_bytes(cols));
      codec->encode(random.floats(static_cast<size_t>(rows * cols)).data(), w.data(), rows * cols);
      const std::vector<float> x = random.floats(static_cast<size_t>(tokens * cols));
      std::vector<float> panel(static_cast<size_t>(kPanelRows * cols));
      const auto run = [&](const Kernels& kernels) {
        std::vector<float> y(static_cast<size_t>(tokens * rows));
        MatmulArgs a;
        a.w = w.data();
        a.row_bytes = codec->row_bytes(cols);
        a.form = codec->form;
        a.decode = codec->decode;
        a.rows = a.row_end = rows;
        a.cols = a.x_stride = cols;
        a.x = x.data();
        a.y = y.data();
        a.y_stride = rows;
        a.tokens = tokens;
        a.panel = panel.data();
        kernels.matmul(a);
        return y;
      };
      const std::vector<float> expected = run(kScalarKernels);
      for (const Kernels* table : simd_tables())
        ASSERT_TRUE(same_floats(run(*table), expected)) << table->name << ", " << codec->name << ", " << tokens;
    }
}

TEST(KernelsMatmul, EveryTableEqualsTheDefinitionInBits) {
  Random random(2);
  std::vector<const Kernels*> tables = simd_tables();
  tables.push_back(&kScalarKernels);
  for (const Form& form : forms())
    for (int i = 0; i < 16; ++i) {
      const Product product(form, i % 2 == 0, i % 4 == 0, random);
      const MatmulArgs& a = product.args();
      for (const Kernels* table : tables) {
        const std::vector<float> y = product.run(*table);
        for (int t = 0; t < a.tokens; ++t)
          for (int64_t r = a.row_begin; r < a.row_end; ++r) {
            float dot = dot_by_hand(
                a.cols, [&](int64_t k) { return product.weight(r, k); }, a.x + t * a.x_stride);
            if (a.bias != nullptr) dot += a.bias[r];
            ASSERT_TRUE(math_test::same(y[static_cast<size_t>(t * a.y_stride + r)], dot))
                << table->name << " " << form.name;
          }
      }
    }
}

TEST(KernelsMatmul, CodecDotIsTheDefinition) {
  Random random(3);
  for (const Codec* codec : codecs()) {
    ASSERT_LE(codec->block_elems, kMaxBlockElems);
    if (codec->block_elems > 1) continue;  // block types round the other operand first
    for (int n = 1; n <= 100; ++n) {
      const std::vector<float> w = random.floats(static_cast<size_t>(n), n % 2 == 0);
      const std::vector<float> x = random.floats(static_cast<size_t>(n), n % 3 == 0);
      std::vector<std::byte> row(codec->row_bytes(n));
      std::vector<float> back(w.size());
      codec->encode(w.data(), row.data(), n);
      codec->decode(row.data(), back.data(), n);
      const float expected = dot_by_hand(
          n, [&](int64_t i) { return back[static_cast<size_t>(i)]; }, x.data());
      ASSERT_TRUE(math_test::same(codec->dot(row.data(), reinterpret_cast<const std::byte*>(x.data()), n), expected))
          << codec->name << " " << n;
    }
  }
}

TEST(KernelsMatmul, ScalarIsTheProductWithinRounding) {
  Random random(4);
  for (const Form& form : forms())
    for (int i = 0; i < 20; ++i) {
      const Product product(form, i % 2 == 0, false, random);
      const MatmulArgs& a = product.args();
      const std::vector<float> y = product.run(kScalarKernels);
      for (int t = 0; t < a.tokens; ++t)
        for (int64_t r = a.row_begin; r < a.row_end; ++r) {
          double sum = a.bias != nullptr ? static_cast<double>(a.bias[r]) : 0.0, size = std::fabs(sum);
          for (int64_t k = 0; k < a.cols; ++k) {
            const double term =
                static_cast<double>(product.weight(r, k)) * static_cast<double>(a.x[t * a.x_stride + k]);
            sum += term;
            size += std::fabs(term);
          }
          ASSERT_TRUE(close(y[static_cast<size_t>(t * a.y_stride + r)], sum, 0x1p-20 * size)) << form.name;
        }
    }
}

TEST(KernelsMatmul, WritesItsRowsAndNothingElse) {
  Random random(5);
  for (int i = 0; i < 60; ++i) {
    const Product product(forms()[static_cast<size_t>(i) % 5], i % 2 == 0, false, random);
    const MatmulArgs& a = product.args();
    std::vector<const Kernels*> tables = simd_tables();
    tables.push_back(&kScalarKernels);
    for (const Kernels* table : tables) {
      const std::vector<float> y = product.run(*table);
      for (size_t j = 0; j < y.size(); ++j) {
        const int64_t r = static_cast<int64_t>(j) % a.y_stride;
        ASSERT_EQ(y[j] != 777.0f, r >= a.row_begin && r < a.row_end) << table->name << " " << product.text();
      }
    }
  }
}

// ---- rotations --------------------------------------------------------------------------------------------------

struct Rotation {
  int heads, head_dim, channels;
  bool interleaved;
  std::vector<float> row, cos, sin;

  Rotation(int h, int d, int n, bool i, bool extremes, Random& random)
      : heads(h), head_dim(d), channels(n), interleaved(i), row(random.floats(static_cast<size_t>(h * d), extremes)) {
    for (int j = 0; j < n / 2; ++j) {
      const float angle = 100.0f * random.plain();
      cos.push_back(std::cos(angle));
      sin.push_back(std::sin(angle));
    }
  }
  std::vector<float> run(const Kernels& kernels) const {
    const GuardedBytes x(row), c(cos), s(sin);
    kernels.rope({x.floats(), heads, head_dim, channels, c.floats(), s.floats(), interleaved});
    return {x.floats(), x.floats() + row.size()};
  }
};

constexpr int kHeadSizes[] = {2, 3, 6, 7, 8, 16, 18, 30, 32, 34, 50, 63, 64, 66, 80, 98, 128, 130};

TEST(KernelsRope, EveryTableEqualsTheScalarOneInBits) {
  Random random(6);
  for (int d : kHeadSizes)
    for (int heads = 1; heads <= 3; ++heads)
      for (bool interleaved : {false, true}) {
        const Rotation rotation(heads, d, heads == 3 ? d / 2 : d, interleaved, heads == 2, random);
        for (const Kernels* table : simd_tables())
          ASSERT_TRUE(same_floats(rotation.run(*table), rotation.run(kScalarKernels))) << table->name << " " << d;
      }
}

TEST(KernelsRope, ScalarTurnsEveryPairAndKeepsTheRest) {
  Random random(7);
  for (int d : kHeadSizes)
    for (bool interleaved : {false, true}) {
      const int n = d % 3 == 0 ? d / 2 : d;
      const Rotation r(2, d, n, interleaved, false, random);
      const std::vector<float> out = r.run(kScalarKernels);
      for (int h = 0; h < 2; ++h) {
        for (int i = 0; i < n / 2; ++i) {
          const size_t a = static_cast<size_t>(h * d + (interleaved ? 2 * i : i));
          const size_t b = static_cast<size_t>(h * d + (interleaved ? 2 * i + 1 : n / 2 + i));
          const double x = static_cast<double>(r.row[a]), y = static_cast<double>(r.row[b]);
          const double c = static_cast<double>(r.cos[static_cast<size_t>(i)]);
          const double s = static_cast<double>(r.sin[static_cast<size_t>(i)]);
          ASSERT_TRUE(close(out[a], x * c - y * s, 1e-6)) << d;
          ASSERT_TRUE(close(out[b], x * s + y * c, 1e-6)) << d;
        }
        for (int i = n / 2 * 2; i < d; ++i)
          ASSERT_EQ(out[static_cast<size_t>(h * d + i)], r.row[static_cast<size_t>(h * d + i)]) << d;
      }
    }
}

// ---- norms and elementwise --------------------------------------------------------------------------------------

// The result of a kernel over rows of n, for three inputs; all memory ends at unmapped pages.
using RowKernel = std::vector<float> (*)(const Kernels&, const std::vector<float>&, const std::vector<float>&,
                                         const std::vector<float>&);

std::vector<float> taken(const GuardedBytes& bytes, size_t n) { return {bytes.floats(), bytes.floats() + n}; }

std::vector<float> run_rms_norm(const Kernels& k, const std::vector<float>& x, const std::vector<float>& gain,
                                const std::vector<float>&) {
  const GuardedBytes gx(x), gg(gain), y(x);
  k.rms_norm(gx.floats(), gg.floats(), 1e-5f, y.floats(), static_cast<int64_t>(x.size()));
  return taken(y, x.size());
}
std::vector<float> run_layer_norm(const Kernels& k, const std::vector<float>& x, const std::vector<float>& gain,
                                  const std::vector<float>& bias) {
  const GuardedBytes gx(x), gg(gain), gb(bias), y(x);
  k.layer_norm(gx.floats(), gg.floats(), gb.floats(), 1e-5f, y.floats(), static_cast<int64_t>(x.size()));
  return taken(y, x.size());
}
template <Activation kF>
std::vector<float> run_gate(const Kernels& k, const std::vector<float>& x, const std::vector<float>& up,
                            const std::vector<float>&) {
  const GuardedBytes gate(x), gu(up);
  k.activate(kF, gate.floats(), gu.floats(), static_cast<int64_t>(x.size()));
  return taken(gate, x.size());
}
template <Activation kF>
std::vector<float> run_alone(const Kernels& k, const std::vector<float>& x, const std::vector<float>&,
                             const std::vector<float>&) {
  const GuardedBytes gx(x);
  k.activate(kF, gx.floats(), nullptr, static_cast<int64_t>(x.size()));
  return taken(gx, x.size());
}
std::vector<float> run_norm_without_bias(const Kernels& k, const std::vector<float>& x, const std::vector<float>& gain,
                                         const std::vector<float>&) {
  const GuardedBytes gx(x), gg(gain), y(x);
  k.layer_norm(gx.floats(), gg.floats(), nullptr, 1e-5f, y.floats(), static_cast<int64_t>(x.size()));
  return taken(y, x.size());
}
std::vector<float> run_add_scaled(const Kernels& k, const std::vector<float>& x, const std::vector<float>& y,
                                  const std::vector<float>&) {
  const GuardedBytes gx(x), gy(y);
  k.add_scaled(gx.floats(), 0.22f, gy.floats(), static_cast<int64_t>(x.size()));
  return taken(gx, x.size());
}
std::vector<float> run_scale(const Kernels& k, const std::vector<float>& x, const std::vector<float>&,
                             const std::vector<float>&) {
  const GuardedBytes gx(x);
  k.scale(gx.floats(), 0.7f, static_cast<int64_t>(x.size()));
  return taken(gx, x.size());
}
std::vector<float> run_soft_cap(const Kernels& k, const std::vector<float>& x, const std::vector<float>&,
                                const std::vector<float>&) {
  const GuardedBytes gx(x);
  k.soft_cap(gx.floats(), 3.0f, static_cast<int64_t>(x.size()));
  return taken(gx, x.size());
}
std::vector<float> run_softmax(const Kernels& k, const std::vector<float>& x, const std::vector<float>&,
                               const std::vector<float>&) {
  const GuardedBytes gx(x);
  k.softmax(gx.floats(), static_cast<int64_t>(x.size()));
  return taken(gx, x.size());
}
std::vector<float> run_add(const Kernels& k, const std::vector<float>& x, const std::vector<float>& y,
                           const std::vector<float>&) {
  const GuardedBytes gx(x), gy(y);
  k.add(gx.floats(), gy.floats(), static_cast<int64_t>(x.size()));
  return taken(gx, x.size());
}

constexpr RowKernel kRowKernels[] = {run_rms_norm,
                                     run_layer_norm,
                                     run_norm_without_bias,
                                     run_gate<Activation::silu>,
                                     run_gate<Activation::gelu_tanh>,
                                     run_gate<Activation::gelu_erf>,
                                     run_gate<Activation::relu_squared>,
                                     run_gate<Activation::sigmoid>,
                                     run_gate<Activation::clamped_swiglu>,
                                     run_alone<Activation::silu>,
                                     run_alone<Activation::gelu_tanh>,
                                     run_alone<Activation::gelu_erf>,
                                     run_alone<Activation::relu_squared>,
                                     run_alone<Activation::sigmoid>,
                                     run_add,
                                     run_add_scaled,
                                     run_scale,
                                     run_soft_cap,
                                     run_softmax};

TEST(KernelsRows, EveryTableEqualsTheScalarOneInBits) {
  Random random(8);
  for (RowKernel kernel : kRowKernels)
    for (size_t n = 1; n <= 100; ++n)
      for (bool extremes : {false, true}) {
        const std::vector<float> x = random.floats(n, extremes), y = random.floats(n, extremes), z = random.floats(n);
        const std::vector<float> expected = kernel(kScalarKernels, x, y, z);
        for (const Kernels* table : simd_tables())
          ASSERT_TRUE(same_floats(kernel(*table, x, y, z), expected)) << table->name << " " << n;
      }
}

TEST(KernelsRows, WeightsOfLogitsAreEqualInBitsAndNearTheirExponentials) {
  Random random(12);
  for (const double scale : {128.0, 160.0, 12.8}) {
    std::vector<float> x = random.floats(256);
    for (float& logit : x) logit *= 9;
    x[7] = -std::numeric_limits<float>::infinity();
    const double best = static_cast<double>(*std::max_element(x.begin(), x.end()));
    WeighArgs args{
        .x = x.data(), .n = 256, .least = -20, .best = best, .scale = scale, .limit = 6400, .interval = 1 / 128.0};
    std::vector<double> rounded(256), weights(256);
    args.rounded = rounded.data();
    args.weights = weights.data();
    kScalarKernels.weigh_logits(args);
    for (size_t i = 0; i < x.size(); ++i) {
      const double depth = x[i] >= args.least ? (best - static_cast<double>(x[i])) * scale : 1e300;
      const auto interval = static_cast<uint32_t>(std::bit_cast<uint64_t>(rounded[i]));
      ASSERT_EQ(interval, depth < 6400 ? static_cast<uint32_t>(std::nearbyint(depth)) : 6400u) << i;
      if (depth < 6400) {
        ASSERT_NEAR(weights[i], std::exp((interval - depth) / 128), 1e-14);
      }
    }
    for (const Kernels* table : simd_tables()) {
      std::vector<double> r(256), w(256);
      args.rounded = r.data();
      args.weights = w.data();
      table->weigh_logits(args);
      EXPECT_EQ(std::memcmp(r.data(), rounded.data(), 256 * sizeof(double)), 0) << table->name;
      EXPECT_EQ(std::memcmp(w.data(), weights.data(), 256 * sizeof(double)), 0) << table->name;
    }
  }
}

TEST(KernelsRows, ScalarNormsAreTheFormulas) {
  Random random(9);
  for (size_t n = 1; n <= 100; ++n) {
    const std::vector<float> x = random.floats(n), gain = random.floats(n), bias = random.floats(n);
    double sum = 0, squares = 0, spread = 0;
    for (float v : x) sum += static_cast<double>(v), squares += static_cast<double>(v) * static_cast<double>(v);
    const double count = static_cast<double>(n), mean = sum / count;
    for (float v : x) spread += (static_cast<double>(v) - mean) * (static_cast<double>(v) - mean);
    const double rms = 1 / std::sqrt(squares / count + 1e-5), dev = 1 / std::sqrt(spread / count + 1e-5);
    const std::vector<float> r = run_rms_norm(kScalarKernels, x, gain, bias);
    const std::vector<float> l = run_layer_norm(kScalarKernels, x, gain, bias);
    for (size_t i = 0; i < n; ++i) {
      const double v = static_cast<double>(x[i]), g = static_cast<double>(gain[i]);
      ASSERT_TRUE(close(r[i], v * rms * g, 2e-6 * std::fabs(v * rms * g) + 1e-12)) << n;
      // A single channel is its own mean: the result is rounding error, magnified by 1 / sqrt(eps).
      ASSERT_TRUE(close(l[i], (v - mean) * dev * g + static_cast<double>(bias[i]), n == 1 ? 1e-3 : 2e-5)) << n;
    }
  }
}

TEST(KernelsRows, ScalarActivationsAreTheFormulas) {
  Random random(10);
  for (size_t n = 1; n <= 100; ++n) {
    std::vector<float> x = random.floats(n), y = random.floats(n);
    for (float& v : x) v *= 5;
    const std::vector<float> silu = run_gate<Activation::silu>(kScalarKernels, x, y, {}),
                             gelu = run_alone<Activation::gelu_tanh>(kScalarKernels, x, {}, {});
    const std::vector<float> sum = run_add(kScalarKernels, x, y, {});
    for (size_t i = 0; i < n; ++i) {
      const double v = static_cast<double>(x[i]), u = static_cast<double>(y[i]);
      const double s = v / (1 + std::exp(-v)) * u;
      const double g = 0.5 * v * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (v + 0.044715 * v * v * v)));
      ASSERT_TRUE(close(silu[i], s, 4e-7 * std::fabs(s) + 1e-12));
      ASSERT_TRUE(close(gelu[i], g, 2e-6 * std::fabs(g) + 1e-9)) << v;
      ASSERT_EQ(sum[i], x[i] + y[i]);
    }
  }
}

}  // namespace
}  // namespace kvasir
