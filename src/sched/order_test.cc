// Who is admitted first.
#include "sched/order.h"

#include <gmock/gmock.h>

namespace kvasir::sched {
namespace {

using testing::ElementsAre;

TEST(AdmissionOrder, OwnersByTokensThenPriorityThenArrival) {
  const Waiting waiting[] = {{"a", 50, 0, 1}, {"b", 10, 0, 2}, {"b", 10, 5, 4}, {"b", 10, 0, 3}, {"c", 10, 0, 0}};
  EXPECT_THAT(admission_order(waiting), ElementsAre(2, 1, 3, 4, 0));
}

TEST(AdmissionOrder, MoreReusableTokensGoAhead) {
  const Waiting waiting[] = {{"a", 0, 0, 1, 0}, {"a", 0, 0, 2, 64}, {"a", 0, 0, 3, 512}};
  EXPECT_THAT(admission_order(waiting), ElementsAre(2, 0, 1));
}

TEST(AdmissionOrder, NobodyIsPassedByForEver) {
  const Waiting waiting[] = {{"a", 0, 0, 1, 0, kMostBypasses}, {"a", 0, 0, 2, 64}};
  EXPECT_THAT(admission_order(waiting), ElementsAre(0, 1));
}

TEST(AdmissionOrder, OnlyTheFirstFewGoAhead) {
  std::vector<Waiting> waiting;
  for (uint64_t i = 0; i <= kBypassDepth; ++i) waiting.push_back({"a", 0, 0, i, 0});
  waiting.back().reusable = 1000;
  EXPECT_EQ(admission_order(waiting).front(), 0u);
  waiting[kBypassDepth - 1].reusable = 10;
  EXPECT_EQ(admission_order(waiting).front(), kBypassDepth - 1);
}

TEST(Follows, WhereEnoughIsBeingComputed) {
  std::vector<int> text(200), leader(300);
  EXPECT_TRUE(follows(text, 0, leader));
  leader[100] = 7;
  EXPECT_TRUE(follows(text, 36, leader));
  EXPECT_FALSE(follows(text, 37, leader)) << "63 tokens are not worth waiting";
  leader[10] = 7;
  EXPECT_FALSE(follows(text, 0, leader));
}

}  // namespace
}  // namespace kvasir::sched
