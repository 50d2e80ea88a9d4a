// Fork and join for all numbers of threads and chunks. All suites run under ThreadSanitizer: chunks write plain memory,
// so a missing happens-before edge between a chunk and the end of its run is reported.
#include "base/thread_pool.h"

#include <gmock/gmock.h>

#include <array>
#include <chrono>
#include <climits>
#include <cmath>
#include <cstring>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/system.h"

namespace kvasir {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

std::unique_ptr<ThreadPool> make_pool(int threads) {
  auto pool = ThreadPool::create(threads);
  EXPECT_TRUE(pool) << pool.error().message();
  return std::move(*pool);
}

// Lets `n` chunks continue only when all of them have begun, which takes n threads at once. Returns false after ten
// seconds.
class Meeting {
 public:
  explicit Meeting(int n) : missing_(n) {}
  bool wait() {
    --missing_;
    for (const double end = now_seconds() + 10; missing_ > 0;) {
      if (now_seconds() > end) return false;
      std::this_thread::yield();
    }
    return true;
  }

 private:
  std::atomic<int> missing_;
};

// ---- which chunks run -------------------------------------------------------------------------------------------

class PoolOf : public testing::TestWithParam<int> {};

TEST_P(PoolOf, EveryChunkExactlyOnce) {
  const auto pool = make_pool(GetParam());
  ASSERT_EQ(pool->threads(), GetParam());
  for (int chunks = 0; chunks <= 1000; chunks += chunks < 130 ? 1 : 29) {
    std::vector<int> hits(static_cast<size_t>(chunks), 0);
    int stray = 0;
    pool->run(chunks, [&](int chunk, int) {
      if (chunk < 0 || chunk >= chunks)
        ++stray;
      else
        ++hits[static_cast<size_t>(chunk)];
    });
    ASSERT_EQ(stray, 0) << chunks << " chunks";
    ASSERT_THAT(hits, Each(1)) << chunks << " chunks";
  }
}

TEST_P(PoolOf, TinyRunsBackToBack) {
  const auto pool = make_pool(GetParam());
  std::array<int64_t, 3> sums{};
  for (int run = 1; run <= 10'000; ++run) {
    pool->run(3, [&](int chunk, int) { sums[static_cast<size_t>(chunk)] += int64_t{run} * (chunk + 1); });
  }
  constexpr int64_t kSum = 10'000LL * 10'001 / 2;
  EXPECT_THAT(sums, testing::ElementsAre(kSum, 2 * kSum, 3 * kSum));
}

TEST_P(PoolOf, WorkerNamesOneThreadAndItsScratch) {
  const int threads = GetParam();
  const auto pool = make_pool(threads);
  const size_t n = static_cast<size_t>(threads);
  std::vector<std::atomic<int>> busy(n);
  std::vector<int> scratch(n, 0);  // plain ints: two chunks of one worker at once would be a race
  std::vector<std::thread::id> names(n);
  std::atomic<int> bad = 0;
  constexpr int kRuns = 20, kChunks = 200;
  for (int run = 0; run < kRuns; ++run) {
    pool->run(kChunks, [&](int, int worker) {
      if (worker < 0 || worker >= threads) {
        ++bad;
        return;
      }
      const size_t w = static_cast<size_t>(worker);
      if (busy[w].exchange(1) != 0) ++bad;
      if (++scratch[w] == 1) names[w] = std::this_thread::get_id();
      if (names[w] != std::this_thread::get_id()) ++bad;
      for (int i = 0; i < 50; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
      busy[w] = 0;
    });
  }
  EXPECT_EQ(bad, 0);
  EXPECT_EQ(std::accumulate(scratch.begin(), scratch.end(), 0), kRuns * kChunks);
  EXPECT_TRUE(scratch[0] == 0 || names[0] == std::this_thread::get_id()) << "worker 0 is the caller";
}

// Sums of floats per chunk. Outputs are disjoint, so neither the order of claims nor the threads can change a bit.
std::vector<float> chunked_sums(ThreadPool& pool) {
  constexpr int kChunks = 97;
  std::vector<float> out(kChunks);
  pool.run(kChunks, [&](int chunk, int) {
    float sum = 0;
    for (int i = 0; i < 300; ++i) sum = std::fma(1.0f / static_cast<float>(chunk + i + 1), 0.1f, sum);
    out[static_cast<size_t>(chunk)] = sum;
  });
  return out;
}

TEST_P(PoolOf, ResultsAreThoseOfOneThread) {
  const auto one = make_pool(1), many = make_pool(GetParam());
  const std::vector<float> expected = chunked_sums(*one);
  for (int i = 0; i < 50; ++i) {
    const std::vector<float> got = chunked_sums(*many);
    ASSERT_EQ(std::memcmp(got.data(), expected.data(), got.size() * sizeof(float)), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, PoolOf, testing::Range(1, 9),
                         [](const auto& of) { return std::to_string(of.param); });

// ---- waking, sleeping, ending -----------------------------------------------------------------------------------

TEST(ThreadsPool, SleepersWakeForTheNextRun) {
  const auto pool = make_pool(3);
  for (int run = 0; run < 5; ++run) {
    std::this_thread::sleep_for(std::chrono::milliseconds(run % 2 == 0 ? 60 : 2));  // longer than spinning and yielding
    Meeting meeting(3);
    std::array<bool, 3> met{};
    pool->run(3, [&](int chunk, int) { met[static_cast<size_t>(chunk)] = meeting.wait(); });
    ASSERT_THAT(met, Each(true)) << "run " << run << ": a thread slept through it";
  }
}

TEST(ThreadsPool, MoreThreadsThanCores) {
  const int threads = std::min(ThreadPool::kMaxThreads, 8 * available_cpus() + 3);
  const auto pool = make_pool(threads);
  ASSERT_EQ(pool->threads(), threads);
  for (int run = 0; run < 200; ++run) {
    std::vector<int> hits(61, 0);
    pool->run(61, [&](int chunk, int) { hits[static_cast<size_t>(chunk)] += run + chunk; });
    for (int chunk = 0; chunk < 61; ++chunk) ASSERT_EQ(hits[static_cast<size_t>(chunk)], run + chunk);
  }
  Meeting meeting(threads);  // all of them take part
  std::atomic<int> met = 0;
  pool->run(threads, [&](int, int) { met += meeting.wait() ? 1 : 0; });
  EXPECT_EQ(met, threads);
}

TEST(ThreadsPool, EndsAtAnyMoment) {
  for (int i = 0; i < 60; ++i) {
    const auto unused = make_pool(4);
    const auto pool = make_pool(4);
    int sum[2] = {};
    pool->run(2, [&](int chunk, int) { sum[chunk] = i + chunk; });
    EXPECT_EQ(sum[0] + sum[1], 2 * i + 1);
    if (i % 20 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));  // some end while asleep
  }
}

TEST(ThreadsPool, PoolsDoNotDisturbEachOther) {
  std::array<int64_t, 2> sums{};
  std::vector<std::thread> sessions;
  for (size_t s = 0; s < 2; ++s) {
    sessions.emplace_back([&sums, s] {
      const auto pool = make_pool(2);
      std::array<int64_t, 5> parts{};
      for (int run = 0; run < 1000; ++run) {
        pool->run(5, [&](int chunk, int) { parts[static_cast<size_t>(chunk)] += chunk + static_cast<int>(s); });
      }
      sums[s] = std::accumulate(parts.begin(), parts.end(), int64_t{0});
    });
  }
  for (std::thread& session : sessions) session.join();
  EXPECT_THAT(sums, testing::ElementsAre(10'000, 15'000));
}

// ---- what is refused --------------------------------------------------------------------------------------------

TEST(ThreadsPool, RefusesCountsOutOfRange) {
  for (const int threads : {INT_MIN, -1, 0, ThreadPool::kMaxThreads + 1, INT_MAX}) {
    const auto pool = ThreadPool::create(threads);
    ASSERT_FALSE(pool) << threads;
    EXPECT_THAT(pool.error().message(), AllOf(HasSubstr(std::to_string(threads) + " threads"), HasSubstr("1..256"),
                                              HasSubstr("EngineOptions::threads")));
  }
}

TEST(ThreadsPool, NoChunksCallNothing) {
  const auto pool = make_pool(2);
  int calls = 0;
  for (const int chunks : {0, -1, INT_MIN}) pool->run(chunks, [&](int, int) { ++calls; });
  EXPECT_EQ(calls, 0);
}

}  // namespace
}  // namespace kvasir
