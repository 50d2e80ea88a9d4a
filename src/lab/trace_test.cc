// The state of a replay, with times that the test chooses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <kvasir/bench.h>

namespace kvasir {
namespace {

using testing::ElementsAre;

constexpr int kVocab = 97;

std::vector<int> joined(std::initializer_list<std::vector<int>> parts) {
  std::vector<int> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

TraceRequest request(const std::string& name, std::vector<TraceRequest::Run> prompt, const std::string& owner) {
  TraceRequest request;
  request.name = name;
  request.prompt = std::move(prompt);
  request.owner = owner;
  return request;
}

std::vector<TraceRequest> some() {
  TraceRequest a = request("a", {{5, 1}, {3, 2}}, "x"), b = request("b", {{4, 1}}, "y");
  a.at_s = 1;
  b.at_s = 0.5;
  b.choices = 2;
  b.cancel_after = 5;
  TraceRequest c = request("c", {{2, 3}}, "x"), d = request("d", {{1, 4}}, "");
  c.after = "a";
  c.think_s = 0.25;
  c.continues = true;
  d.after = "c";
  return {a, b, c, d};
}

TEST(TraceReplay, RequestsAreDueOnceInTheirOrder) {
  const auto trace = some();
  TraceReplay replay(trace, kVocab);
  EXPECT_EQ(replay.take_due(0.4), std::nullopt);
  EXPECT_EQ(replay.next_due(), 0.5);
  EXPECT_EQ(replay.take_due(7), 1u);
  EXPECT_EQ(replay.take_due(7), 0u);
  EXPECT_EQ(replay.take_due(7), std::nullopt);
  EXPECT_FALSE(replay.is_over());
  EXPECT_EQ(replay.prompt(0), joined({trace_ids({5, 1}, kVocab), trace_ids({3, 2}, kVocab)}));
  replay.see_end(1, {}, 8);
  EXPECT_EQ(replay.next_due(), std::nullopt);
  replay.see_end(0, {71, 72}, 9);
  EXPECT_EQ(replay.next_due(), 9.25);
  ASSERT_EQ(replay.take_due(9.25), 2u);
  EXPECT_EQ(replay.prompt(2), joined({replay.prompt(0), {71, 72}, trace_ids({2, 3}, kVocab)}));
  replay.see_failure(2, 10);
  ASSERT_EQ(replay.take_due(10), 3u) << "it does not continue c, and comes though c failed";
  EXPECT_EQ(replay.prompt(3), trace_ids({1, 4}, kVocab));
  replay.see_end(3, {}, 11);
  EXPECT_TRUE(replay.is_over());
}

TEST(TraceReplay, TimesCountFromTheDueMoment) {
  const auto trace = some();
  TraceReplay replay(trace, kVocab);
  replay.take_due(2);             // b, due at 0.5
  replay.take_due(2);             // a, due at 1
  replay.see_tokens(1, 1, 1, 2);  // choice 1 does not count for the first token
  replay.see_tokens(1, 0, 1, 3.5);
  replay.see_tokens(0, 0, 1, 5);
  replay.see_tokens(0, 0, 2, 5.125);
  replay.see_end(1, {}, 6.5);
  replay.see_end(0, {}, 6.75);
  replay.take_due(7);
  replay.see_tokens(2, 0, 1, 17);  // due at 7
  replay.see_failure(2, 100);
  ServeReport report;
  report.stats.generated = 30;
  replay.report(&report, 60);
  EXPECT_EQ(report.requests, 4);
  EXPECT_EQ(report.wall_s, 60);
  EXPECT_EQ(report.generated_tok_s, 0.5);
  EXPECT_EQ(report.first_token_s.p50, 4) << "of 3, 4 and 10";
  EXPECT_EQ(report.first_token_s.most, 10);
  EXPECT_EQ(report.first_token_s_of_owner.size(), 2u);
  EXPECT_EQ(report.first_token_s_of_owner["x"].p50, 4);
  EXPECT_EQ(report.first_token_s_of_owner["y"].most, 3);
  EXPECT_EQ(report.between_tokens_s.most, 0.125);
  EXPECT_EQ(report.total_s.p50, 5.75);
  EXPECT_EQ(report.total_s.most, 6) << "what failed has no time";
}

TEST(TraceReplay, TheClientLeavesOnce) {
  const auto trace = some();
  TraceReplay replay(trace, kVocab);
  replay.take_due(1);
  EXPECT_FALSE(replay.see_tokens(1, 0, 2, 1));
  EXPECT_FALSE(replay.see_tokens(1, 1, 2, 1));
  EXPECT_TRUE(replay.see_tokens(1, 0, 2, 1)) << "6 of all choices, 5 are the limit";
  EXPECT_FALSE(replay.see_tokens(1, 1, 2, 1));
  replay.take_due(1);
  EXPECT_FALSE(replay.see_tokens(0, 0, 1000, 1));
}

}  // namespace
}  // namespace kvasir
