// Division of products among threads: bits do not depend on the number of threads, and each thread has its own scratch.
#include "math/compute.h"

#include <algorithm>
#include <atomic>
#include <set>

#include "tests/support/kernel_inputs.h"

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

// Several products of the same x, with the memory that they need.
struct Jobs {
  std::vector<std::vector<std::byte>> weights;
  std::vector<std::vector<float>> ys, biases;
  std::vector<float> x_values;
  Rows x;
  std::vector<MatmulJob> list;

  Jobs(int tokens, int64_t cols, Random& random)
      : x_values(random.floats(static_cast<size_t>(tokens * cols))), x{x_values.data(), tokens, cols, cols} {}

  void add(const Codec& codec, int64_t rows, bool conv1d, Random& random) {
    const int64_t stored_rows = conv1d ? x.cols : rows, stored_cols = conv1d ? rows : x.cols;
    weights.emplace_back(static_cast<size_t>(stored_rows) * codec.row_bytes(stored_cols));
    for (int64_t r = 0; r < stored_rows; ++r)
      codec.encode(random.floats(static_cast<size_t>(stored_cols)).data(),
                   weights.back().data() + static_cast<size_t>(r) * codec.row_bytes(stored_cols), stored_cols);
    ys.emplace_back(static_cast<size_t>(x.n * rows), 777.0f);
    biases.push_back(random.floats(static_cast<size_t>(rows)));
    list.push_back({{&codec, weights.back().data(), rows, x.cols, conv1d},
                    list.size() % 2 == 0 ? biases.back().data() : nullptr,
                    {ys.back().data(), x.n, rows, rows}});
  }
  void clear_results() {
    for (auto& y : ys) std::fill(y.begin(), y.end(), 777.0f);
  }
};

std::unique_ptr<Compute> make_compute(int threads, const Jobs& jobs) {
  auto compute = make_compute(threads, kPanelRows * jobs.x.cols);
  EXPECT_TRUE(compute->reserve_acts(jobs.x.n, jobs.x.cols));
  return compute;
}

// Jobs with an odd number of inputs, and jobs with a number that integer types can have, mixed with others.
std::vector<Jobs> mixed_jobs(int tokens, uint64_t seed) {
  Random random(seed);
  std::vector<Jobs> all;
  Jobs& odd = all.emplace_back(tokens, 97, random);
  odd.add(codec_f32(), 70, false, random);
  odd.add(codec_f16(), 1, false, random);
  odd.add(codec_bf16(), 199, false, random);
  odd.add(codec_bf16(), 99, true, random);
  odd.add(codec_f32(), 300, true, random);
  odd.add(codec_f32(), 3001, false, random);  // more than one chunk; its last chunk continues in the next job
  odd.add(codec_f16(), 5, false, random);
  Jobs& whole = all.emplace_back(tokens, 256, random);
  whole.add(*find_codec("q8_0"), 33, false, random);
  whole.add(codec_f16(), 65, false, random);
  whole.add(*find_codec("q4_k"), 48, false, random);
  whole.add(codec_f32(), 20, true, random);
  whole.add(*find_codec("q5_1"), 17, false, random);
  whole.add(*find_codec("q6_k"), 2011, false, random);
  return all;
}

TEST(ThreadsCompute, BitsDoNotDependOnTheThreads) {
  for (int tokens : {1, 3, 4, 5, 40})
    for (Jobs& jobs : mixed_jobs(tokens, 21)) {
      const auto alone = make_compute(1, jobs);
      for (const MatmulJob& job : jobs.list) alone->matmul(jobs.x, {&job, 1});
      const std::vector<std::vector<float>> expected = jobs.ys;
      for (const auto& y : expected) ASSERT_EQ(std::count(y.begin(), y.end(), 777.0f), 0);
      for (int threads = 1; threads <= 8; ++threads) {
        const auto compute = make_compute(threads, jobs);
        EXPECT_EQ(compute->threads(), threads);
        for (int repeat = 0; repeat < 3; ++repeat) {
          jobs.clear_results();
          compute->matmul(jobs.x, jobs.list);
          for (size_t i = 0; i < jobs.ys.size(); ++i)
            ASSERT_TRUE(same_floats(jobs.ys[i], expected[i]))
                << threads << " threads, " << tokens << " tokens, job " << i;
        }
      }
    }
}

TEST(ThreadsCompute, EqualsTheScalarKernelInBits) {
  for (Jobs& jobs : mixed_jobs(7, 22)) {
    make_compute(3, jobs)->matmul(jobs.x, jobs.list);
    for (size_t i = 0; i < jobs.list.size(); ++i) {
      const MatmulJob& job = jobs.list[i];
      std::vector<float> y(jobs.ys[i].size()), panel(static_cast<size_t>(kPanelRows * job.w.cols));
      std::vector<ActBlock> acts(static_cast<size_t>(jobs.x.n * (job.w.cols / kActElems)));
      MatmulArgs a;
      a.w = job.w.data;
      a.row_bytes = job.w.row_bytes();
      a.conv1d = job.w.conv1d;
      a.decode = job.w.codec->decode;
      a.dot = job.w.codec->dot;
      a.rows = a.row_end = job.w.rows;
      a.cols = a.x_stride = job.w.cols;
      a.x = jobs.x.data;
      a.act = acts.data();
      a.y = y.data();
      a.y_stride = job.w.rows;
      a.tokens = jobs.x.n;
      a.bias = job.bias;
      a.panel = panel.data();
      if (job.w.codec->act == Act::q8) {
        encode_act(jobs.x.data, acts.data(), jobs.x.n * job.w.cols);
        kScalarKernels.integer.matmul(a);
      } else {
        kScalarKernels.matmul(a);
      }
      EXPECT_TRUE(same_floats(jobs.ys[i], y)) << i;
    }
  }
}

// GGUF's rows of q and k: output j * pair_dim / 2 + i of a group is stored row 2i + j, for any number of threads.
TEST(ThreadsCompute, PairedRowsComeOutInOrder) {
  Random random(24);
  Jobs jobs(6, 40, random);
  jobs.add(codec_f32(), 24, false, random);
  const auto compute = make_compute(4, jobs);
  compute->matmul(jobs.x, jobs.list);
  const std::vector<float> stored = jobs.ys[0];
  jobs.list[0].bias = nullptr;
  compute->matmul(jobs.x, jobs.list);
  const std::vector<float> plain = jobs.ys[0];
  jobs.list[0].w.order = {8, 2, 1};
  compute->matmul(jobs.x, jobs.list);
  for (int t = 0; t < 6; ++t)
    for (int group = 0; group < 3; ++group)
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 2; ++j) {
          const auto at = [&](int row) { return static_cast<size_t>(t * 24 + group * 8 + row); };
          ASSERT_EQ(jobs.ys[0][at(j * 4 + i)], plain[at(2 * i + j)]) << t << " " << group << " " << i << " " << j;
        }
  jobs.list[0].bias = jobs.biases[0].data();  // a bias in the order of the rows
  compute->matmul(jobs.x, jobs.list);
  EXPECT_EQ(jobs.ys[0][1], stored[2]);
}

TEST(ThreadsCompute, MoreJobsThanThreadsAndMoreThreadsThanChunks) {
  Random random(23);
  Jobs many(1, 53, random), one(6, 9, random);
  for (int i = 0; i < 50; ++i) many.add(codec_f32(), 1 + i % 3, false, random);
  one.add(codec_f32(), 2, false, random);
  const auto alone = make_compute(1, many), eight = make_compute(8, many);
  for (Jobs* jobs : {&many, &one}) {
    alone->matmul(jobs->x, jobs->list);
    const std::vector<std::vector<float>> expected = jobs->ys;
    jobs->clear_results();
    eight->matmul(jobs->x, jobs->list);
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(same_floats(jobs->ys[i], expected[i])) << i;
  }
  eight->matmul(many.x, {});
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
