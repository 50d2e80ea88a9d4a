// Which sequence is admitted first.
#include "sched/order.h"

#include <gmock/gmock.h>

namespace kvasir::sched {
namespace {

using testing::ElementsAre;

TEST(AdmissionOrder, OwnersByTokensThenPriorityThenArrival) {
  const Waiting waiting[] = {{"a", 50, 0, 1}, {"b", 10, 0, 2}, {"b", 10, 5, 4}, {"b", 10, 0, 3}, {"c", 10, 0, 0}};
  EXPECT_THAT(admission_order(waiting), ElementsAre(2, 1, 3, 4, 0));
}

TEST(FirstOfOwner, MoreReusableTokensGoAhead) {
  EXPECT_EQ(first_of_owner(std::vector{0, 64, 512}, 0), 2u);
  EXPECT_EQ(first_of_owner(std::vector{64, 64}, 0), 0u);
}

TEST(FirstOfOwner, NobodyIsPassedByForEver) {
  EXPECT_EQ(first_of_owner(std::vector{0, 64}, kMostBypasses - 1), 1u);
  EXPECT_EQ(first_of_owner(std::vector{0, 64}, kMostBypasses), 0u);
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
