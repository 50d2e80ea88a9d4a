// Views of the cache: numbers stay with their blocks, forks share blocks, the last change is shown, nobody costs
// nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <kvasir/scheduler.h>

#include "tests/support/engines.h"

namespace kvasir {
namespace {

using namespace engine_test;
using Views = std::vector<std::shared_ptr<const CacheView>>;

Request request(int prompt, int tokens, int choices = 1) {
  Request r;
  r.prompt = tiny::ids(prompt);
  r.options = greedy_tokens(tokens);
  r.options.ignore_eos = true;
  r.choices = choices;
  return r;
}

std::unique_ptr<Scheduler> scheduler_of(Opened& opened) {
  auto made = Scheduler::create(opened.engine());
  EXPECT_TRUE(made) << message_of(made);
  return std::move(*made);
}

void run_all(Scheduler& scheduler) {
  while (scheduler.run_once({})) {
  }
}

TEST(CacheView, BlocksKeepTheirNumbersAndForksShareThem) {
  Opened opened("tales", {.threads = 2, .prefix_ram = 1 << 24});
  const auto scheduler = scheduler_of(opened);
  Views views;
  scheduler->observe([&](auto view) { views.push_back(std::move(view)); }, 0);
  ASSERT_TRUE(scheduler->submit(request(130, 20, 2)));
  run_all(*scheduler);
  ASSERT_GT(views.size(), 10u);
  std::map<uint64_t, std::vector<int>> blocks;
  size_t most_shared = 0;
  int copies = 0;
  for (const auto& view : views) {
    size_t shared = 0;
    for (const CacheBlock& block : view->blocks) shared += block.sequences.size() == 2 ? 1 : 0;
    most_shared = std::max(most_shared, shared);
    for (const CacheSequence& s : view->sequences) {
      EXPECT_EQ(s.blocks.size(), static_cast<size_t>((s.computed + 63) / 64)) << s.id;
      copies += s.copied >= 0 ? 1 : 0;
      std::vector<int>& before = blocks[s.id];
      for (size_t i = 0; i + 1 < std::min(before.size(), s.blocks.size()); ++i) EXPECT_EQ(before[i], s.blocks[i]);
      before = s.blocks;
    }
  }
  EXPECT_GE(most_shared, 2u) << "130 tokens are two whole blocks and a part";
  EXPECT_GT(copies, 0) << "the part was copied by the choice that wrote to it first";
  const CacheView& last = *views.back();
  EXPECT_TRUE(last.sequences.empty());
  EXPECT_EQ(last.stats.finished, 1);
  int tokens = 0;
  for (const CacheNode& node : last.nodes) {
    tokens += node.tokens;
    EXPECT_THAT(node.requests, testing::ElementsAre(last.nodes[0].requests[0]));
  }
  EXPECT_GE(tokens, 130) << "the prompt and both answers are stored";
  for (const CacheBlock& block : last.blocks) EXPECT_TRUE(block.stored);
}

TEST(CacheView, NodesNameTheRequestsThatLedThroughThem) {
  Opened opened("tales", {.threads = 2, .prefix_ram = 1 << 24});
  const auto scheduler = scheduler_of(opened);
  std::shared_ptr<const CacheView> last;
  scheduler->observe([&](auto view) { last = std::move(view); }, 0);
  // Two go on differently after 70 tokens; the third is the first one's beginning; the last has nothing to do with
  // them.
  std::vector<RequestId> ids;
  for (const auto& [length, next] : {std::pair{70, 5}, {70, 6}, {40, 0}, {0, 7}}) {
    Request one = request(length, 8);
    one.prompt.resize(static_cast<size_t>(length) + (next == 0 ? 0 : 30), next);
    ids.push_back(*scheduler->submit(std::move(one)));
    run_all(*scheduler);
  }
  std::map<int, std::vector<RequestId>> by_depth;  // of the branch of the first three
  for (const CacheNode& node : last->nodes) {
    by_depth[node.depth].insert(by_depth[node.depth].end(), node.requests.begin(), node.requests.end());
  }
  EXPECT_THAT(by_depth[0], testing::UnorderedElementsAre(ids[0], ids[1], ids[2], ids[3]));
  EXPECT_THAT(by_depth[70], testing::UnorderedElementsAre(ids[0], ids[1]));
}

TEST(CacheView, IsMadeForNobodyAndEndsWhenAsked) {
  Opened opened("tales", {.threads = 2});
  const auto scheduler = scheduler_of(opened);
  int views = 0;
  scheduler->observe([&](auto) { ++views; }, 0);
  scheduler->observe(nullptr);
  ASSERT_TRUE(scheduler->submit(request(5, 5)));
  run_all(*scheduler);
  EXPECT_EQ(views, 0);
}

TEST(CacheView, TheIntervalIsKept) {
  Opened opened("tales", {.threads = 2});
  double now = 100;
  SchedulerOptions options;
  options.clock = [&] { return now; };
  const auto scheduler = *Scheduler::create(opened.engine(), options);
  std::vector<double> times;
  scheduler->observe([&](auto view) { times.push_back(view->time); }, 1);
  ASSERT_TRUE(scheduler->submit(request(5, 50)));
  while (scheduler->run_once({})) now += 0.3;
  ASSERT_GT(times.size(), 5u);
  for (size_t i = 1; i < times.size(); ++i) EXPECT_GE(times[i] - times[i - 1], 1);
}

}  // namespace
}  // namespace kvasir
