// Splitting products over threads: the bits do not depend on how many there are, and scratch is each thread's own.
#include "math/compute.h"

#include <algorithm>
#include <atomic>
#include <set>

#include "math/kernels_test_util.h"

namespace kvasir {
namespace {

using math_test::Random;
using math_test::same_floats;

std::unique_ptr<Compute> make_compute(int threads, int64_t scratch) {
  auto compute = Compute::create(threads);
  EXPECT_TRUE(compute) << compute.error().message();
  EXPECT_TRUE((*compute)->reserve_scratch(scratch));
  return std::move(*compute);
}

// Several products of different shapes with the memory they need.
struct Jobs {
  std::vector<std::vector<std::byte>> weights;
  std::vector<std::vector<float>> xs, ys, biases;
  std::vector<MatmulJob> list;
  int64_t most_cols = 0;

  void add(const Codec& codec, int64_t rows, int64_t cols, int tokens, bool conv1d, Random& random) {
    const int64_t stored_rows = conv1d ? cols : rows, stored_cols = conv1d ? rows : cols;
    weights.emplace_back(static_cast<size_t>(stored_rows) * codec.row_bytes(stored_cols));
    for (int64_t r = 0; r < stored_rows; ++r)
      codec.encode(random.floats(static_cast<size_t>(stored_cols)).data(),
                   weights.back().data() + static_cast<size_t>(r) * codec.row_bytes(stored_cols), stored_cols);
    xs.push_back(random.floats(static_cast<size_t>(tokens * cols)));
    ys.emplace_back(static_cast<size_t>(tokens * rows), 777.0f);
    biases.push_back(random.floats(static_cast<size_t>(rows)));
    list.push_back({{&codec, weights.back().data(), rows, cols, conv1d},
                    list.size() % 2 == 0 ? biases.back().data() : nullptr,
                    {xs.back().data(), tokens, cols, cols},
                    {ys.back().data(), tokens, rows, rows}});
    most_cols = std::max(most_cols, cols);
  }
  void clear_results() {
    for (auto& y : ys) std::fill(y.begin(), y.end(), 777.0f);
  }
};

Jobs mixed_jobs(int tokens, uint64_t seed) {
  Random random(seed);
  Jobs jobs;
  jobs.add(codec_f32(), 70, 33, tokens, false, random);
  jobs.add(codec_f16(), 1, 97, tokens, false, random);
  jobs.add(codec_bf16(), 199, 48, tokens, false, random);
  jobs.add(codec_bf16(), 99, 40, tokens, true, random);
  jobs.add(codec_f32(), 300, 200, tokens, true, random);
  jobs.add(codec_f16(), 33, 64, tokens, false, random);
  return jobs;
}

TEST(ThreadsCompute, BitsDoNotDependOnTheThreads) {
  for (int tokens : {1, 3, 4, 5, 40}) {
    Jobs jobs = mixed_jobs(tokens, 21);
    const auto alone = make_compute(1, kPanelRows * jobs.most_cols);
    for (const MatmulJob& job : jobs.list) alone->matmul({&job, 1});
    const std::vector<std::vector<float>> expected = jobs.ys;
    for (const auto& y : expected) ASSERT_EQ(std::count(y.begin(), y.end(), 777.0f), 0);
    for (int threads = 1; threads <= 8; ++threads) {
      const auto compute = make_compute(threads, kPanelRows * jobs.most_cols);
      EXPECT_EQ(compute->threads(), threads);
      for (int repeat = 0; repeat < 3; ++repeat) {
        jobs.clear_results();
        compute->matmul(jobs.list);
        for (size_t i = 0; i < jobs.ys.size(); ++i)
          ASSERT_TRUE(same_floats(jobs.ys[i], expected[i]))
              << threads << " threads, " << tokens << " tokens, job " << i;
      }
    }
  }
}

TEST(ThreadsCompute, EqualsTheScalarKernelInBits) {
  Jobs jobs = mixed_jobs(7, 22);
  const auto compute = make_compute(3, kPanelRows * jobs.most_cols);
  compute->matmul(jobs.list);
  for (size_t i = 0; i < jobs.list.size(); ++i) {
    const MatmulJob& job = jobs.list[i];
    std::vector<float> y(jobs.ys[i].size()), panel(static_cast<size_t>(kPanelRows * job.w.cols));
    MatmulArgs a;
    a.w = job.w.data;
    a.row_bytes = job.w.row_bytes();
    a.conv1d = job.w.conv1d;
    a.decode = job.w.codec->decode;
    a.rows = a.row_end = job.w.rows;
    a.cols = a.x_stride = job.w.cols;
    a.x = job.x.data;
    a.y = y.data();
    a.y_stride = job.w.rows;
    a.tokens = job.x.n;
    a.bias = job.bias;
    a.panel = panel.data();
    kScalarKernels.matmul(a);
    EXPECT_TRUE(same_floats(jobs.ys[i], y)) << i;
  }
}

TEST(ThreadsCompute, MoreJobsThanThreadsAndMoreThreadsThanChunks) {
  Random random(23);
  Jobs many;
  for (int i = 0; i < 50; ++i) many.add(codec_f32(), 1 + i % 3, 5 + i, 1, false, random);
  Jobs one;
  one.add(codec_f32(), 2, 9, 6, false, random);
  const auto alone = make_compute(1, kPanelRows * many.most_cols), eight = make_compute(8, kPanelRows * many.most_cols);
  for (Jobs* jobs : {&many, &one}) {
    alone->matmul(jobs->list);
    const std::vector<std::vector<float>> expected = jobs->ys;
    jobs->clear_results();
    eight->matmul(jobs->list);
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(same_floats(jobs->ys[i], expected[i])) << i;
  }
  eight->matmul({});
}

TEST(ThreadsCompute, ScratchIsEachThreadsOwnAndOnlyGrows) {
  const auto compute = make_compute(4, 100);
  std::set<float*> areas;
  for (int w = 0; w < 4; ++w) areas.insert(compute->scratch(w));
  EXPECT_EQ(areas.size(), 4u);
  float* before = compute->scratch(2);
  ASSERT_TRUE(compute->reserve_scratch(50));
  EXPECT_EQ(compute->scratch(2), before);
  EXPECT_FALSE(compute->reserve_scratch(int64_t{1} << 58)) << "no system has that much memory";
  EXPECT_EQ(compute->scratch(2), before) << "a refused growth changes nothing";
  ASSERT_TRUE(compute->reserve_scratch(100000));
  compute->pool().run(
      16, [&](int chunk, int worker) { std::fill_n(compute->scratch(worker), 100000, static_cast<float>(chunk)); });
}

TEST(ThreadsCompute, ForRowsVisitsEveryRowOnce) {
  const auto compute = make_compute(5, 1);
  for (int n : {0, 1, 3, 4, 5, 63}) {
    std::vector<std::atomic<int>> visits(static_cast<size_t>(n));
    compute->for_rows(n, [&](int t) { visits[static_cast<size_t>(t)].fetch_add(1); });
    for (const auto& count : visits) EXPECT_EQ(count.load(), 1) << n;
  }
}

TEST(ThreadsCompute, RefusesThreadCountsByNumber) {
  for (int threads : {0, -1, 257}) {
    const auto refused = Compute::create(threads);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message().find(std::to_string(threads)), std::string::npos) << refused.error().message();
  }
}

}  // namespace
}  // namespace kvasir
