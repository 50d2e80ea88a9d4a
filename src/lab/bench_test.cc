// Benchmarks of tiny models: names, depths, spread, refusals. tests/conformance checks that speeds need a passed
// verification.
#include <kvasir/bench.h>

#include <kvasir/plan.h>

#include "tests/support/engines.h"

namespace kvasir {
namespace {

using engine_test::AllOf;
using engine_test::HasSubstr;
using engine_test::message_of;
using engine_test::Opened;

BenchOptions small(int prompt, int generate, int depth, int repeats) {
  BenchOptions o;
  o.prompt = prompt;
  o.generate = generate;
  o.depth = depth;
  o.repeats = repeats;
  o.threads = {1};
  return o;
}

std::vector<std::string> names(const BenchReport& report) {
  std::vector<std::string> out;
  for (const BenchTest& test : report.tests) out.push_back(test.name);
  return out;
}

TEST(Bench, NamesTestsAsLlamaBenchDoes) {
  Opened opened(tiny::llama());
  const auto flat = bench(opened.shared(), small(8, 4, 0, 1));
  ASSERT_TRUE(flat) << message_of(flat);
  EXPECT_TRUE(flat->verified);
  EXPECT_EQ(flat->cpu, opened.engine().cpu());
  EXPECT_EQ(names(*flat), (std::vector<std::string>{"pp8", "tg4"}));
  const auto deep = bench(opened.shared(), small(0, 4, 96, 1));
  ASSERT_TRUE(deep) << message_of(deep);
  EXPECT_EQ(names(*deep), std::vector<std::string>{"tg4@d96"});
}

TEST(SlowBench, RunsEveryTestForEveryThreadCount) {
  Opened opened(tiny::gpt2());
  BenchOptions o = small(5, 3, 70, 1);
  o.threads = {1, 2};
  std::vector<std::string> said;
  o.progress = [&](const std::string& what) { said.push_back(what); };
  const auto report = bench(opened.shared(), o);
  ASSERT_TRUE(report) << message_of(report);
  EXPECT_EQ(names(*report), (std::vector<std::string>{"pp5@d70", "tg3@d70", "pp5@d70", "tg3@d70"}));
  EXPECT_EQ(report->tests[1].threads, 1);
  EXPECT_EQ(report->tests[2].threads, 2);
  EXPECT_EQ(said.front(), "verifying");
}

// Layout none computes the whole depth again in each step: some 70 times the work.
TEST(SlowBench, DepthIsInTheCacheBeforeTheClockStarts) {
  Opened opened(tiny::llama());
  const auto speed = [&](const char* layout, int depth) {
    BenchOptions o = small(0, 2, depth, 3);
    o.session.layout = layout;
    const auto report = bench(opened.shared(), o);
    EXPECT_TRUE(report) << layout << ": " << message_of(report);
    return report ? report->tests[0].tok_s_median : 0;
  };
  const double forgetting = speed("none", 140);
  EXPECT_GT(speed("none", 0), 3 * forgetting);
  EXPECT_GT(speed("grow", 140), 3 * forgetting);
}

TEST(SlowBench, NamesTheBatch) {
  Opened opened(tiny::llama());
  BenchOptions o = small(6, 4, 0, 2);
  o.batch = 3;
  const auto flat = bench(opened.shared(), o);
  ASSERT_TRUE(flat) << message_of(flat);
  EXPECT_EQ(names(*flat), (std::vector<std::string>{"pp6x3", "tg4x3"}));
  EXPECT_EQ(flat->tests[1].batch, 3);
  o.depth = 70;
  const auto deep = bench(opened.shared(), o);
  ASSERT_TRUE(deep) << message_of(deep);
  EXPECT_EQ(names(*deep), (std::vector<std::string>{"pp6x3@d70", "tg4x3@d70"}));
}

// With layout none a step of 4 sequences does 4 times the work, so the rate over all of them stays about the same. If
// one sequence were fed and counted 4 times, it would be 4 times as high.
TEST(SlowBench, ABatchIsThatManySequences) {
  Opened opened(tiny::llama());
  const auto speed = [&](int batch) {
    BenchOptions o = small(0, 2, 140, 8);
    o.session.layout = "none";
    o.batch = batch;
    const auto report = bench(opened.shared(), o);
    EXPECT_TRUE(report) << message_of(report);
    return report ? report->tests[0].tok_s_max : 0;
  };
  const double one = speed(1);
  EXPECT_LT(speed(4), 2 * one);
}

// A step reads the weights once, and the history of each sequence at the middle of the test.
TEST(Bench, LimitOfABatchReadsTheWeightsOnce) {
  Opened opened(tiny::llama());
  const auto bytes_of_a_step = [&](int batch) {
    BenchOptions o = small(0, 4, 100, 1);
    o.batch = batch;
    const auto report = bench(opened.shared(), o);
    EXPECT_TRUE(report) << message_of(report);
    if (!report) return 0.0;
    const BenchTest& t = report->tests[0];
    return t.fraction_of_limit * report->limits.memory / t.tok_s_median * batch;
  };
  PlanRequest request;
  request.model = opened.model().info().path;
  request.chat = 102;
  const auto planned = plan(request);
  ASSERT_TRUE(planned) << message_of(planned);
  const auto weights = static_cast<double>(planned->read_bytes_per_token - 102 * planned->kv_bytes_per_token);
  const auto kv = static_cast<double>(102 * planned->kv_bytes_per_token);
  for (int batch : {1, 5}) EXPECT_NEAR(bytes_of_a_step(batch), weights + batch * kv, 1e-6 * weights) << batch;
}

TEST(Bench, SummariesAgree) {
  Opened opened(tiny::llama());
  const auto report = bench(opened.shared(), small(4, 2, 0, 4));
  ASSERT_TRUE(report) << message_of(report);
  for (const BenchTest& t : report->tests) {
    EXPECT_GT(t.tok_s_min, 0);
    EXPECT_LE(t.tok_s_min, t.tok_s_median);
    EXPECT_LE(t.tok_s_median, t.tok_s_max);
    EXPECT_LE(t.tok_s_min, t.tok_s_mean);
    EXPECT_LE(t.tok_s_mean, t.tok_s_max);
    EXPECT_GT(t.tok_s_stddev, 0);
    EXPECT_LE(t.tok_s_stddev, t.tok_s_max - t.tok_s_min);
    EXPECT_GT(t.fraction_of_limit, 0);
  }
  const auto once = bench(opened.shared(), small(0, 2, 0, 1));
  ASSERT_TRUE(once) << message_of(once);
  EXPECT_EQ(once->tests[0].tok_s_stddev, 0);
  EXPECT_EQ(once->tests[0].tok_s_mean, once->tests[0].tok_s_median);
}

TEST(Bench, RefusesWhatDoesNotFit) {
  Opened opened(tiny::llama());
  const int most = opened.model().info().max_ctx;
  EXPECT_THAT(message_of(bench(opened.shared(), small(8, 4, most - 7, 1))),
              AllOf(HasSubstr(std::to_string(most - 7)), HasSubstr(std::to_string(most))));
  EXPECT_THAT(message_of(bench(opened.shared(), small(8, 4, 0, 0))), HasSubstr("BenchOptions::repeats: 0 repeats"));
  EXPECT_THAT(message_of(bench(opened.shared(), small(8, 4, -1, 1))), HasSubstr("BenchOptions::depth: -1 positions"));
  for (int batch : {0, -2}) {
    BenchOptions o = small(8, 4, 0, 1);
    o.batch = batch;
    EXPECT_THAT(message_of(bench(opened.shared(), o)),
                HasSubstr("BenchOptions::batch: " + std::to_string(batch) + " sequences"));
  }
}

TEST(Limits, AreMeasured) {
  const auto limits = measure_rates(1);
  ASSERT_TRUE(limits) << message_of(limits);
  EXPECT_GT(limits->memory, 1e8);
  EXPECT_LT(limits->memory, 1e13);
  EXPECT_FALSE(limits->disk) << "no file was named";
  EXPECT_GT(limits->flops, 1e8);
  EXPECT_LT(limits->flops, 1e14);
  EXPECT_GT(limits->int8_ops, 1e8);
  EXPECT_LT(limits->int8_ops, 1e15);
  EXPECT_THAT(message_of(measure_rates(-1)), HasSubstr("-1"));
}

}  // namespace
}  // namespace kvasir
