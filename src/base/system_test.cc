// Facts about the machine, checked against the environment variable, the affinity mask and touched memory.
#include "base/system.h"

#include <gmock/gmock.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>

#include "base/buffer.h"

namespace kvasir {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Sets KVASIR_CPU (null: unsets it) while this object lives.
class CpuVariable {
 public:
  explicit CpuVariable(const char* value) {
    if (const char* old = std::getenv("KVASIR_CPU")) old_ = old;
    set(value);
  }
  ~CpuVariable() { set(old_ ? old_->c_str() : nullptr); }
  CpuVariable(const CpuVariable&) = delete;
  CpuVariable& operator=(const CpuVariable&) = delete;

 private:
  static void set(const char* value) {
    if (value != nullptr)
      setenv("KVASIR_CPU", value, 1);
    else
      unsetenv("KVASIR_CPU");
  }
  std::optional<std::string> old_;
};

TEST(System, EveryTargetHasItsOwnName) {
  EXPECT_STREQ(cpu_target_name(CpuTarget::scalar), "scalar");
  EXPECT_STREQ(cpu_target_name(CpuTarget::avx2), "avx2");
  EXPECT_STREQ(cpu_target_name(CpuTarget::avx2_vnni), "avx2_vnni");
  EXPECT_STREQ(cpu_target_name(CpuTarget::avx512), "avx512");
  EXPECT_STREQ(cpu_target_name(CpuTarget::avx512_vnni), "avx512_vnni");
  EXPECT_STREQ(cpu_target_name(CpuTarget::neon), "neon");
  EXPECT_STREQ(cpu_target_name(CpuTarget::neon_dotprod), "neon_dotprod");
}

TEST(System, WithoutAWishTheBestTargetIsChosen) {
  std::optional<CpuTarget> best;
  for (const char* value : {static_cast<const char*>(nullptr), ""}) {
    const CpuVariable variable(value);
    const auto target = choose_cpu_target();
    ASSERT_TRUE(target) << target.error().message();
    EXPECT_EQ(*target, best.value_or(*target));
    best = *target;
  }
#if defined(__x86_64__)
  EXPECT_NE(*best, CpuTarget::scalar);
#endif
}

// A named target is used or refused, and the refusal lists exactly the names that are accepted.
TEST(System, ANamedTargetIsObeyedOrRefusedWithTheChoices) {
  std::string choices;
  {
    const CpuVariable variable("no-such-cpu");
    const auto refused = choose_cpu_target();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().where, "KVASIR_CPU");
    EXPECT_THAT(refused.error().what, HasSubstr("\"no-such-cpu\""));
    choices = ", " + refused.error().hint + ", ";
  }
  EXPECT_THAT(choices, HasSubstr(", scalar, "));
  for (const CpuTarget target : {CpuTarget::scalar, CpuTarget::avx2, CpuTarget::avx2_vnni, CpuTarget::avx512,
                                 CpuTarget::avx512_vnni, CpuTarget::neon, CpuTarget::neon_dotprod}) {
    const std::string name = cpu_target_name(target);
    const CpuVariable variable(name.c_str());
    const auto chosen = choose_cpu_target();
    EXPECT_EQ(chosen.has_value(), choices.find(", " + name + ", ") != std::string::npos) << name;
    EXPECT_EQ(chosen.value_or(target), target);
  }
}

TEST(System, NamesAreMatchedWhole) {
  for (const char* name : {"AVX2", "avx", "avx2 ", " scalar", "scalarx", "avx512f", "0"}) {
    const CpuVariable variable(name);
    const auto refused = choose_cpu_target();
    ASSERT_FALSE(refused) << name;
    EXPECT_THAT(refused.error().message(), AllOf(HasSubstr(name), HasSubstr("scalar")));
  }
}

TEST(System, DefaultThreadsRespectTheAffinityMask) {
  EXPECT_GE(default_threads(), 1);
  EXPECT_LE(default_threads(), available_cpus());
  cpu_set_t old, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof old, &old), 0);
  EXPECT_EQ(available_cpus(), CPU_COUNT(&old));
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu)
    if (CPU_ISSET(cpu, &old)) CPU_SET(cpu, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  const int cpus = available_cpus(), threads = default_threads();
  ASSERT_EQ(sched_setaffinity(0, sizeof old, &old), 0);
  EXPECT_EQ(cpus, 1);
  EXPECT_EQ(threads, 1);
}

size_t resident_bytes() {
  size_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

TEST(System, PeakRssGrowsByWhatIsTouchedAndStays) {
  constexpr size_t kMiB = size_t{1} << 20, kMore = 32 * kMiB, kNoise = 6 * kMiB;
  const size_t peak = peak_rss_bytes(), now = resident_bytes();
  ASSERT_GT(peak + kNoise, now);
  const size_t below_peak = peak > now ? peak - now : 0;
  const size_t shadow = (below_peak + kMore) / 8;  // a sanitizer's shadow of the touched memory
  {
    auto buffer = Buffer::allocate(below_peak + kMore, Owner::activations);
    ASSERT_TRUE(buffer) << buffer.error().message();
    EXPECT_LT(peak_rss_bytes(), peak + kNoise) << "mapped and not touched";
    buffer->touch();
    EXPECT_GT(peak_rss_bytes(), peak + kMore - kNoise);
    EXPECT_LT(peak_rss_bytes(), peak + kMore + shadow + kNoise);
  }
  EXPECT_GT(peak_rss_bytes(), peak + kMore - kNoise) << "a peak does not sink";
}

TEST(System, AvailableMemoryIsPlausible) {
  const size_t pages = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)), page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  EXPECT_GT(available_memory_bytes(), size_t{1} << 20);
  EXPECT_LE(available_memory_bytes(), pages * page);
}

TEST(System, CpuModelNameIsOneTrimmedLine) {
  const std::string name = cpu_model_name();  // may be empty, as on most Arm machines
  EXPECT_EQ(name.find('\n'), std::string::npos);
  EXPECT_FALSE(name.starts_with(' ') || name.starts_with(':')) << name;
}

TEST(System, CachesGrowWithTheirLevel) {
  const CacheSizes sizes = cache_sizes();  // any may be unknown, as on most Arm machines
  if (sizes.l1 == 0 || sizes.l2 == 0) GTEST_SKIP() << "the C library does not know the caches of this CPU";
  EXPECT_GE(sizes.l1, size_t{8} << 10);
  EXPECT_LE(sizes.l1, size_t{1} << 20);
  EXPECT_GT(sizes.l2, sizes.l1);
  if (sizes.l3 != 0) {
    EXPECT_GT(sizes.l3, sizes.l2);
  }
}

}  // namespace
}  // namespace kvasir
