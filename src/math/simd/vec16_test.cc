// Every vec16 operation of every CPU that this machine can run, against scalar loops, in bits. The functions built on
// them are compared with the scalar type here; functions_test.cc tests their accuracy.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "dtype/codec.h"
#include "dtype/lanes.h"
#include "math/functions.h"
#include "math/simd/vec16_scalar.h"
#include "tests/support/vec16_ops.h"

namespace kvasir {
namespace {

using scalar::F1;

uint32_t bits_of(float x) { return std::bit_cast<uint32_t>(x); }
float from_bits(uint32_t bits) { return std::bit_cast<float>(bits); }
/// Equal in bits, or both NaN: the compiler chooses which operand's payload survives arithmetic.
bool same(float a, float b) { return bits_of(a) == bits_of(b) || (std::isnan(a) && std::isnan(b)); }

constexpr float kInf = std::numeric_limits<float>::infinity();
const float kSpecial[] = {0.0f,
                          -0.0f,
                          kInf,
                          -kInf,
                          from_bits(0x7fc12345u),
                          from_bits(0xffc54321u),
                          from_bits(1),
                          from_bits(0x80000001u),
                          from_bits(0x007fffffu),
                          std::numeric_limits<float>::max(),
                          -std::numeric_limits<float>::max(),
                          std::numeric_limits<float>::min(),
                          1.0f,
                          -1.0f,
                          0x1.fffffep-1f,
                          1.5f};

/// Sixteen lanes that all differ. Every fourth draw is a special value, every fourth any bit pattern.
class Lanes {
 public:
  explicit Lanes(uint32_t seed) : random_(seed) {}
  void fill(float* lanes) {
    for (int i = 0; i < kLanes; ++i) lanes[i] = next();
  }

 private:
  float next() {
    const auto kind = random_() % 4;
    if (kind == 0) return kSpecial[random_() % std::size(kSpecial)];
    if (kind == 1) {
      const float any = from_bits(static_cast<uint32_t>(random_()));
      return std::isnan(any) ? from_bits(bits_of(any) | 0x400000u) : any;  // only quiet NaNs
    }
    return static_cast<float>(static_cast<int32_t>(random_())) * 0x1p-28f;
  }
  std::mt19937 random_;
};

/// Memory whose last byte is followed by an inaccessible page.
class GuardedPage {
 public:
  GuardedPage() : page_(static_cast<size_t>(sysconf(_SC_PAGESIZE))) {
    base_ = mmap(nullptr, 2 * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ready_ = base_ != MAP_FAILED && mprotect(end(), page_, PROT_NONE) == 0;
  }
  ~GuardedPage() {
    if (base_ != MAP_FAILED) munmap(base_, 2 * page_);
  }
  GuardedPage(const GuardedPage&) = delete;
  GuardedPage& operator=(const GuardedPage&) = delete;

  bool ready() const { return ready_; }
  std::byte* end() const { return static_cast<std::byte*>(base_) + page_; }

 private:
  size_t page_;
  void* base_ = nullptr;
  bool ready_ = false;
};

/// The targets of this architecture, including those that this machine cannot run.
std::vector<const Vec16Ops*> compiled_targets() {
  std::vector<const Vec16Ops*> targets;
  for (const Vec16Ops* ops : {vec16_ops_avx2(), vec16_ops_avx512(), vec16_ops_neon()})
    if (ops != nullptr) targets.push_back(ops);
  return targets;
}

class Vec16 : public testing::TestWithParam<const Vec16Ops*> {
 protected:
  void SetUp() override {
    ops_ = GetParam();
    if (!ops_->runs_here()) GTEST_SKIP() << "this machine has no " << ops_->cpu;
  }

  using Oracle = float (*)(float a, float b, float c);
  void expect_lanes(Vec16Ops::Op op, Oracle oracle, const char* what) {
    Lanes lanes(7);
    for (int round = 0; round < 400; ++round) {
      float a[kLanes], b[kLanes], c[kLanes], out[kLanes];
      lanes.fill(a), lanes.fill(b), lanes.fill(c);
      op(a, b, c, 0, out);
      for (int i = 0; i < kLanes; ++i)
        ASSERT_TRUE(same(out[i], oracle(a[i], b[i], c[i])))
            << what << " lane " << i << ": " << a[i] << ", " << b[i] << ", " << c[i] << " gave " << out[i];
    }
  }

  const Vec16Ops* ops_ = nullptr;
};

INSTANTIATE_TEST_SUITE_P(Cpu, Vec16, testing::ValuesIn(compiled_targets()),
                         [](const auto& test) { return std::string(test.param->cpu); });

TEST_P(Vec16, ArithmeticIsIeeeInEveryLane) {
  expect_lanes(
      ops_->add, [](float a, float b, float) { return a + b; }, "add");
  expect_lanes(
      ops_->sub, [](float a, float b, float) { return a - b; }, "sub");
  expect_lanes(
      ops_->mul, [](float a, float b, float) { return a * b; }, "mul");
  expect_lanes(
      ops_->div, [](float a, float b, float) { return a / b; }, "div");
  expect_lanes(
      ops_->sqrt, [](float a, float, float) { return std::sqrt(a); }, "sqrt");
  expect_lanes(
      ops_->fma, [](float a, float b, float c) { return std::fma(a, b, c); }, "fma");
}

TEST_P(Vec16, ComparisonsAreFalseOnNan) {
  expect_lanes(
      ops_->lt, [](float a, float b, float) { return a < b ? 1.0f : 0.0f; }, "lt");
  expect_lanes(
      ops_->gt, [](float a, float b, float) { return a > b ? 1.0f : 0.0f; }, "gt");
}

// These operations move bits, so NaN payloads and zero signs must survive.
TEST_P(Vec16, SelectionsAndSignsKeepEveryBit) {
  Lanes lanes(11);
  for (int round = 0; round < 400; ++round) {
    float a[kLanes], b[kLanes], c[kLanes], out[kLanes];
    lanes.fill(a), lanes.fill(b), lanes.fill(c);
    const auto expect = [&](Vec16Ops::Op op, int n, auto oracle, const char* what) {
      op(a, b, c, n, out);
      for (int i = 0; i < kLanes; ++i) ASSERT_EQ(bits_of(out[i]), oracle(i)) << what << " lane " << i;
    };
    expect(
        ops_->max, 0, [&](int i) { return bits_of(a[i] > b[i] ? a[i] : b[i]); }, "max");
    expect(
        ops_->select_lt, 0, [&](int i) { return bits_of(a[i] < b[i] ? a[i] : c[i]); }, "select");
    expect(
        ops_->abs, 0, [&](int i) { return bits_of(a[i]) & 0x7fffffffu; }, "abs");
    expect(
        ops_->negate, 0, [&](int i) { return bits_of(a[i]) ^ 0x80000000u; }, "negate");
    expect(
        ops_->copysign, 0, [&](int i) { return (bits_of(a[i]) & 0x7fffffffu) | (bits_of(b[i]) & 0x80000000u); },
        "copysign");
    const int mask = round * 163;  // covers many 16-bit patterns, and bits beyond 16
    expect(
        ops_->mask_bits, mask, [&](int i) { return bits_of((mask >> i & 1) != 0 ? a[i] : b[i]); }, "mask_bits");
  }
}

TEST_P(Vec16, MaxTakesItsSecondOperandOnNanAndOnZeros) {
  const float nan = from_bits(0x7fc00123u);
  const float a[kLanes] = {nan, 1, 0.0f, -0.0f, 2, -kInf}, b[kLanes] = {1, nan, -0.0f, 0.0f, 3, nan};
  float out[kLanes];
  ops_->max(a, b, b, 0, out);
  const uint32_t want[] = {bits_of(1.0f), bits_of(nan), bits_of(-0.0f), bits_of(0.0f), bits_of(3.0f), bits_of(nan)};
  for (size_t i = 0; i < std::size(want); ++i) EXPECT_EQ(bits_of(out[i]), want[i]) << i;
}

TEST_P(Vec16, FmaOfTheFirstLanesLeavesTheOthersUntouched) {
  Lanes lanes(13);
  for (int n = 0; n <= kLanes; ++n)
    for (int round = 0; round < 40; ++round) {
      float a[kLanes], b[kLanes], c[kLanes], out[kLanes];
      lanes.fill(a), lanes.fill(b), lanes.fill(c);
      ops_->fma_n(a, b, c, n, out);
      for (int i = 0; i < n; ++i) ASSERT_TRUE(same(out[i], std::fma(a[i], b[i], c[i]))) << n << " lane " << i;
      for (int i = n; i < kLanes; ++i) ASSERT_EQ(bits_of(out[i]), bits_of(c[i])) << n << " lane " << i;
    }
}

TEST_P(Vec16, Constants) {
  const float a[kLanes] = {3.25f};
  float out[kLanes];
  ops_->set1(a, a, a, 0, out);
  for (float x : out) EXPECT_EQ(x, 3.25f);
  ops_->zero(a, a, a, 0, out);
  for (float x : out) EXPECT_EQ(bits_of(x), 0u);
  ops_->iota(a, a, a, 0, out);
  for (int i = 0; i < kLanes; ++i) EXPECT_EQ(out[i], static_cast<float>(i));
}

TEST_P(Vec16, PowersOfTwo) {
  for (int first = -126; first <= 127; first += kLanes) {
    float n[kLanes], out[kLanes];
    for (int i = 0; i < kLanes; ++i) n[i] = static_cast<float>(std::min(first + i, 127));
    ops_->pow2(n, n, n, 0, out);
    for (int i = 0; i < kLanes; ++i) EXPECT_EQ(out[i], std::ldexp(1.0f, static_cast<int>(n[i]))) << n[i];
  }
}

TEST_P(Vec16, LoadsOfTheFirstLanesReadNothingPastThem) {
  const GuardedPage page;
  ASSERT_TRUE(page.ready());
  for (int n = 0; n <= kLanes; ++n) {
    const size_t count = static_cast<size_t>(n);
    float values[kLanes], out[kLanes];
    Lanes(static_cast<uint32_t>(n)).fill(values);
    std::byte* floats = page.end() - count * sizeof(float);
    std::memcpy(floats, values, count * sizeof(float));
    ops_->load_n(floats, n, out);
    for (int i = 0; i < kLanes; ++i) ASSERT_EQ(bits_of(out[i]), i < n ? bits_of(values[i]) : 0u) << n << " " << i;

    uint16_t halves[kLanes];
    for (int i = 0; i < kLanes; ++i) halves[i] = static_cast<uint16_t>(0x3c01 + 517 * i);
    std::byte* stored = page.end() - count * sizeof(uint16_t);
    std::memcpy(stored, halves, count * sizeof(uint16_t));
    float want[kLanes] = {};
    codec_f16().decode(stored, want, n);
    ops_->load_f16_n(stored, n, out);
    for (int i = 0; i < kLanes; ++i) ASSERT_EQ(bits_of(out[i]), bits_of(want[i])) << "f16 " << n << " " << i;
    codec_bf16().decode(stored, want, n);
    ops_->load_bf16_n(stored, n, out);
    for (int i = 0; i < kLanes; ++i) ASSERT_EQ(bits_of(out[i]), bits_of(want[i])) << "bf16 " << n << " " << i;
  }
}

TEST_P(Vec16, StoresOfTheFirstLanesWriteNothingPastThem) {
  const GuardedPage page;
  ASSERT_TRUE(page.ready());
  for (int n = 0; n <= kLanes; ++n) {
    float values[kLanes], target[kLanes + 1];
    Lanes(static_cast<uint32_t>(n + 100)).fill(values);
    for (int i = 0; i <= kLanes; ++i) target[i] = static_cast<float>(i) + 0.5f;
    ops_->store_n(values, n, target);
    for (int i = 0; i <= kLanes; ++i)
      ASSERT_EQ(bits_of(target[i]), bits_of(i < n ? values[i] : static_cast<float>(i) + 0.5f)) << n << " " << i;
    float* edge = reinterpret_cast<float*>(page.end()) - n;
    ops_->store_n(values, n, edge);
    for (int i = 0; i < n; ++i) ASSERT_EQ(bits_of(edge[i]), bits_of(values[i])) << n << " " << i;
  }
  float values[kLanes], target[kLanes];
  Lanes(5).fill(values);
  ops_->store(values, 0, target);
  EXPECT_EQ(std::memcmp(values, target, sizeof values), 0);
}

TEST_P(Vec16, EveryHalfPatternWidensAsTheCodecDoes) {
  struct Case {
    Vec16Ops::LoadOp load;
    const Codec& codec;
  };
  for (const Case& type : {Case{ops_->load_f16, codec_f16()}, Case{ops_->load_bf16, codec_bf16()}})
    for (uint32_t first = 0; first < 65536; first += kLanes) {
      // An odd address, as a file's tensor may have.
      std::byte stored[2 * kLanes + 1];
      for (uint32_t i = 0; i < kLanes; ++i) {
        const uint16_t pattern = static_cast<uint16_t>(first + i);
        std::memcpy(stored + 1 + 2 * i, &pattern, sizeof pattern);
      }
      float want[kLanes], out[kLanes];
      type.codec.decode(stored + 1, want, kLanes);
      type.load(stored + 1, kLanes, out);
      for (int i = 0; i < kLanes; ++i)
        ASSERT_EQ(bits_of(out[i]), bits_of(want[i])) << type.codec.name << " " << first << " " << i;
    }
}

TEST_P(Vec16, FoldsAssociateAsWrittenDown) {
  std::mt19937 random(3);
  int other_order_differs = 0;
  for (int round = 0; round < 200; ++round) {
    float rows[kLanes * kLanes], want[kLanes], out[kLanes];
    for (float& x : rows)  // magnitudes spread over 2^16, so that the order of the sum shows
      x = std::ldexp(static_cast<float>(static_cast<int32_t>(random())) * 0x1p-31f, static_cast<int>(random() % 16));
    for (int i = 0; i < kLanes; ++i) {
      float lanes[kLanes], ascending = 0.0f;
      std::memcpy(lanes, rows + i * kLanes, sizeof lanes);
      for (float x : lanes) ascending += x;
      want[i] = fold_lanes(lanes);
      other_order_differs += ascending != want[i];
      ops_->fold(rows + i * kLanes, rows, rows, 0, out);
      ASSERT_EQ(bits_of(out[0]), bits_of(want[i])) << i;
    }
    ops_->fold16(rows, rows, rows, 0, out);
    for (int i = 0; i < kLanes; ++i) ASSERT_EQ(bits_of(out[i]), bits_of(want[i])) << i;
  }
  EXPECT_GT(other_order_differs, 1000);
}

TEST_P(Vec16, TransposesAndFindsTheLargest) {
  float rows[kLanes * kLanes], out[kLanes * kLanes];
  for (int i = 0; i < kLanes * kLanes; ++i) rows[i] = static_cast<float>((i * 37) % 256 - 300);
  ops_->transpose16(rows, rows, rows, 0, out);
  for (int i = 0; i < kLanes; ++i)
    for (int j = 0; j < kLanes; ++j) ASSERT_EQ(out[j * kLanes + i], rows[i * kLanes + j]) << i << " " << j;
  for (int i = 0; i < kLanes; ++i) {
    ops_->largest_lane(rows + i * kLanes, rows, rows, 0, out);
    ASSERT_EQ(out[0], *std::max_element(rows + i * kLanes, rows + (i + 1) * kLanes));
  }
}

// Around 130,000 bit patterns per function, spread over the whole float range, give the same bits as the scalar type.
TEST_P(Vec16, FunctionsGiveTheScalarBits) {
  struct Case {
    const char* name;
    Vec16Ops::Op op;
    F1 (*oracle)(F1);
  };
  const Case cases[] = {{"round_to_int", ops_->round_to_int, [](F1 x) { return round_to_int_v(x); }},
                        {"exp", ops_->exp, [](F1 x) { return exp_v(x); }},
                        {"tanh", ops_->tanh, [](F1 x) { return tanh_v(x); }},
                        {"sigmoid", ops_->sigmoid, [](F1 x) { return sigmoid_v(x); }},
                        {"silu", ops_->silu, [](F1 x) { return silu_v(x); }},
                        {"gelu_tanh", ops_->gelu_tanh, [](F1 x) { return gelu_tanh_v(x); }},
                        {"sin", ops_->sin, [](F1 x) { return sin_v(x); }},
                        {"cos", ops_->cos, [](F1 x) { return cos_v(x); }}};
  constexpr uint32_t kStride = 32749;
  for (const Case& function : cases)
    for (uint64_t first = 0; first < (uint64_t{1} << 32); first += uint64_t{kStride} * kLanes) {
      float x[kLanes], out[kLanes];
      for (uint32_t i = 0; i < kLanes; ++i) x[i] = from_bits(static_cast<uint32_t>(first) + i * kStride);
      function.op(x, x, x, 0, out);
      for (int i = 0; i < kLanes; ++i)
        ASSERT_TRUE(same(out[i], function.oracle(F1{x[i]}).v)) << function.name << " of " << x[i] << " gave " << out[i];
    }
}

TEST(Vec16Scalar, SpeaksTheSameOperations) {
  Lanes lanes(17);
  for (int round = 0; round < 200; ++round) {
    float a[kLanes], b[kLanes], c[kLanes];
    lanes.fill(a), lanes.fill(b), lanes.fill(c);
    for (int i = 0; i < kLanes; ++i) {
      const F1 x = scalar::load(a + i), y = scalar::set1(b[i]), z{c[i]};
      ASSERT_TRUE(same(fma(x, y, z).v, std::fma(a[i], b[i], c[i])));
      ASSERT_TRUE(same(sqrt(x).v, std::sqrt(a[i])));
      ASSERT_TRUE(same((x / y).v, a[i] / b[i]));
      ASSERT_EQ(bits_of(max(x, y).v), bits_of(a[i] > b[i] ? a[i] : b[i]));
      ASSERT_EQ(bits_of(copysign(x, y).v), (bits_of(a[i]) & 0x7fffffffu) | (bits_of(b[i]) & 0x80000000u));
      ASSERT_EQ(bits_of(negate(x).v), bits_of(a[i]) ^ 0x80000000u);
      ASSERT_EQ(bits_of(abs(x).v), bits_of(a[i]) & 0x7fffffffu);
    }
  }
  for (int n = -126; n <= 127; ++n) EXPECT_EQ(pow2(F1{static_cast<float>(n)}).v, std::ldexp(1.0f, n));
}

}  // namespace
}  // namespace kvasir
