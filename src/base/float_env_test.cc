// FloatEnv against an environment that someone else set: flushed denormals, another rounding mode, unmasked exceptions.
#include "base/float_env.h"

#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <cfenv>
#include <cfloat>
#include <cmath>
#include <thread>

#include "base/clock.h"
#include "base/thread_pool.h"

namespace kvasir {
namespace {

uint64_t control_word() {
#if defined(__x86_64__)
  return _mm_getcsr();
#else
  uint64_t v;
  __asm__ volatile("mrs %0, fpcr" : "=r"(v));
  return v;
#endif
}

void set_control_word(uint64_t v) {
#if defined(__x86_64__)
  _mm_setcsr(static_cast<uint32_t>(v));
#else
  __asm__ volatile("msr fpcr, %0" : : "r"(v));
#endif
}

#if defined(__x86_64__)
constexpr uint64_t kFlushInputs = 0x40, kFlushResults = 0x8000, kUpward = 0x4000, kDownward = 0x2000;
constexpr uint64_t kMaskDivideByZero = 0x200, kFlags = 0x3f;
#else  // FPCR: FZ flushes both
constexpr uint64_t kFlushInputs = 1u << 24, kFlushResults = 1u << 24, kUpward = 1u << 22, kDownward = 2u << 22;
#endif

// Restores the control word that the test program started with.
class FloatEnvTest : public testing::Test {
 protected:
  FloatEnvTest() : start_(control_word()) {}
  ~FloatEnvTest() override { set_control_word(start_); }
  const uint64_t start_;
};

// Computed at run time through memory, so that no compiler folds it.
float product(float a, float b) {
  volatile float x = a, y = b;
  volatile float z = x * y;
  return z;
}
float quotient(float a, float b) {
  volatile float x = a, y = b;
  volatile float z = x / y;
  return z;
}

// Compares bits, since a comparison of floats would flush its operands too.
bool denormal_results() { return std::bit_cast<uint32_t>(product(FLT_MIN, 0.5f)) == 0x00400000u; }
bool denormal_inputs() { return std::bit_cast<uint32_t>(product(0x1p-140f, 0x1p100f)) == 0x2b800000u; }

// 1/3 and -1/3 round to nearest as 0x3eaaaaab and its negative; under any other rounding mode one of the two differs.
bool to_nearest() { return quotient(1, 3) == 0x1.555556p-2f && quotient(-1, 3) == -0x1.555556p-2f; }

void expect_the_laws_environment() {
  EXPECT_TRUE(denormal_results());
  EXPECT_TRUE(denormal_inputs());
  EXPECT_TRUE(to_nearest());
}

TEST_F(FloatEnvTest, FlushingIsOffInsideAndBackOutside) {
  set_control_word(start_ | kFlushInputs | kFlushResults);
  ASSERT_FALSE(denormal_results());
  ASSERT_FALSE(denormal_inputs());
  {
    const FloatEnv env;
    expect_the_laws_environment();
  }
  EXPECT_FALSE(denormal_results());
  EXPECT_FALSE(denormal_inputs());
}

TEST_F(FloatEnvTest, RoundingIsToNearestInsideAndBackOutside) {
  for (const uint64_t rounding : {kUpward, kDownward, kUpward | kDownward}) {
    set_control_word(start_ | rounding);
    ASSERT_FALSE(to_nearest());
    {
      const FloatEnv env;
      expect_the_laws_environment();
    }
    EXPECT_FALSE(to_nearest());
  }
}

TEST_F(FloatEnvTest, WorksForTheStandardLibrarysSetter) {
  ASSERT_EQ(std::fesetround(FE_UPWARD), 0);
  ASSERT_FALSE(to_nearest());
  {
    const FloatEnv env;
    expect_the_laws_environment();
  }
  EXPECT_EQ(std::fegetround(), FE_UPWARD);
  std::fesetround(FE_TONEAREST);
}

TEST_F(FloatEnvTest, RestoresTheWholeWord) {
  for (const uint64_t bits : {uint64_t{0}, kFlushInputs, kFlushResults | kDownward, kUpward}) {
    set_control_word(start_ | bits);
    const uint64_t before = control_word();
    {
      const FloatEnv outer;
      const FloatEnv inner;  // an entry point called by another
      quotient(1, 3);
    }
    EXPECT_EQ(control_word(), before);
  }
}

TEST_F(FloatEnvTest, RestoresOnEveryWayOut) {
  set_control_word(start_ | kFlushResults);
  const uint64_t before = control_word();
  try {
    const FloatEnv env;
    throw 1;
  } catch (int) {
  }
  EXPECT_EQ(control_word(), before);
}

#if defined(__x86_64__)
TEST_F(FloatEnvTest, ADivisionByZeroIsInfinityNotASignal) {
  set_control_word((start_ & ~kFlags) & ~kMaskDivideByZero);
  {
    const FloatEnv env;
    EXPECT_TRUE(std::isinf(quotient(1, 0)));
  }
  EXPECT_EQ(control_word() & kMaskDivideByZero, 0u);
}
#endif

// A thread inherits the control word of the thread that starts it; the pool's workers must not.
TEST(ThreadsFloatEnv, WorkersDoNotInheritTheCallersEnvironment) {
  const uint64_t start = control_word();
  set_control_word(start | kFlushInputs | kFlushResults | kUpward);
  auto pool = ThreadPool::create(2);
  ASSERT_TRUE(pool) << pool.error().message();
  std::atomic<int> begun = 0;
  bool right[2] = {false, false};
  (*pool)->run(2, [&](int, int worker) {
    ++begun;
    for (const double end = now_seconds() + 10; begun < 2 && now_seconds() < end;) std::this_thread::yield();
    right[worker] = denormal_results() && denormal_inputs() && to_nearest();
  });
  const bool caller_kept = !denormal_results();
  pool->reset();
  set_control_word(start);
  EXPECT_TRUE(right[1]);
  EXPECT_FALSE(right[0]) << "the caller's word is the entry point's to set";
  EXPECT_TRUE(caller_kept);
}

}  // namespace
}  // namespace kvasir
