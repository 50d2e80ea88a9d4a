// Promises and refusals; that memory keeps to them is tests/e2e/budget_runs.cc.
#include "engine/budget.h"

#include <thread>
#include <vector>

#include "arch/network.h"
#include "engine/memory_plan.h"
#include "tests/engine_test_util.h"

namespace kvasir {
namespace {

using namespace engine_test;

TEST(Budget, PromisesUntilNothingIsLeft) {
  const auto budget = Budget::create(1000);
  EXPECT_EQ(budget->left(), 1000u);
  auto weights = budget->take(600, "weights", "weights need", "less");
  ASSERT_TRUE(weights);
  auto first = budget->take(300, "sequences", "a sequence needs", "less");
  ASSERT_TRUE(first);
  EXPECT_EQ(budget->left(), 100u);
  EXPECT_THAT(message_of(budget->take(101, "sequences", "a sequence of 7 needs", "a shorter one")),
              AllOf(HasSubstr("a sequence of 7 needs 101 B, 100 B of the 1000 B for this run are left"),
                    HasSubstr("weights 0.0 MB"), HasSubstr("sequences"), HasSubstr("a shorter one")));
  EXPECT_TRUE(budget->take(100, "sequences", "", "")) << "a promise that nobody keeps is given back";
  first->reset();
  EXPECT_EQ(budget->left(), 400u);
  weights->reset();
  EXPECT_EQ(budget->left(), 1000u);
}

TEST(Budget, WithoutALimitEverythingIsPromised) {
  const auto budget = Budget::create(0);
  EXPECT_FALSE(budget->limited());
  EXPECT_TRUE(budget->take(SIZE_MAX / 2, "weights", "", ""));
  EXPECT_EQ(budget->left(), SIZE_MAX);
}

TEST(ThreadsBudget, NeverPromisesMoreThanItHas) {
  const auto budget = Budget::create(100);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        const auto share = budget->take(30, "sequences", "", "");
        EXPECT_LE(budget->left(), 100u);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(budget->left(), 100u);
}

TEST(MemoryPlan, PositionsAreTheMostThatFit) {
  const Opened opened("tales");
  const Network& net = opened.model().network();
  for (const LayoutInfo* layout : layouts()) {
    CacheShape shape = net.family().cache_needs(net.config());
    shape.k = shape.v = &codec_f32();
    shape.max_ctx = 512;
    for (const int positions : {1, 63, 64, 65, 300, 511}) {
      CacheShape short_one = shape;
      short_one.max_ctx = positions;
      const size_t bytes = session_bytes(net.config(), *layout, short_one);
      EXPECT_GE(positions_that_fit(net.config(), *layout, shape, bytes), positions) << layout->name;
      EXPECT_LE(positions_that_fit(net.config(), *layout, shape, bytes - 1), layout->keeps ? positions - 1 : 512);
    }
    EXPECT_EQ(positions_that_fit(net.config(), *layout, shape, 10), 0);
    EXPECT_EQ(positions_that_fit(net.config(), *layout, shape, SIZE_MAX), 512);
  }
}

TEST(MemoryPlan, AModelThatLeavesTooLittleIsStreamed) {
  EXPECT_EQ(budgeted_mode(200, 300), WeightMode::resident);
  EXPECT_EQ(budgeted_mode(201, 300), WeightMode::streamed);
}

// 30 MB of a model that has 7: resident, and with 26 of them streamed, as plan says.
TEST(MemoryPlan, AModelKeepsToItsBudget) {
  const auto opened = [](size_t ram) {
    ModelOptions options;
    options.ram = ram;
    return Model::open("tales", options);
  };
  const auto roomy = opened(40000000), tight = opened(26000000), none = opened(10000000);
  ASSERT_TRUE(roomy && tight) << message_of(roomy) << message_of(tight);
  EXPECT_EQ((*roomy)->info().weights_mode, "resident");
  EXPECT_EQ((*tight)->info().weights_mode, "streamed");
  EXPECT_THAT(message_of(none), AllOf(HasSubstr("10000000"), HasSubstr("--ram")));
  const auto engine = Engine::create(*tight, {.threads = 1});
  ASSERT_TRUE(engine) << message_of(engine);
  const auto all = (*engine)->open_session();
  ASSERT_TRUE(all) << message_of(all);
  EXPECT_LT(all->ctx(), 1024) << "the model has more positions than the budget";
  SessionOptions dense;
  dense.layout = "dense";
  dense.ctx = 512;
  const auto second = (*engine)->open_session(dense);
  EXPECT_THAT(message_of(second), AllOf(HasSubstr("512 positions"), HasSubstr("sequences"), HasSubstr("26000000")));
}

}  // namespace
}  // namespace kvasir
