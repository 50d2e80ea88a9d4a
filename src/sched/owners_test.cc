// Fair shares between owners.
#include "sched/owners.h"

#include <gtest/gtest.h>

namespace kvasir::sched {
namespace {

TEST(Owners, TokensCountByWeight) {
  Owners owners;
  owners.arrive("a", 1);
  owners.arrive("b", 4);
  owners.charge("a", 100);
  owners.charge("b", 100);
  EXPECT_EQ(owners.counter("a"), 100);
  EXPECT_EQ(owners.counter("b"), 25);
}

TEST(Owners, TimeAwayEarnsNothing) {
  Owners owners;
  owners.arrive("a", 1);
  owners.charge("a", 1000);
  owners.arrive("new", 1);
  EXPECT_EQ(owners.counter("new"), 1000) << "as the least of those who are there";
  owners.leave("new");
  owners.charge("a", 500);
  owners.arrive("new", 1);
  EXPECT_EQ(owners.counter("new"), 1500);
}

TEST(Owners, LeavingAndComingBackForgivesNothing) {
  Owners owners;
  owners.arrive("a", 1);
  owners.arrive("greedy", 1);
  owners.charge("greedy", 5000);
  owners.leave("greedy");
  owners.arrive("greedy", 1);
  EXPECT_EQ(owners.counter("greedy"), 5000);
}

TEST(Owners, NobodyIsRememberedForEver) {
  Owners owners;
  for (int i = 0; i < 1000; ++i) {
    const std::string name = std::to_string(i);
    owners.arrive(name, 1);
    owners.charge(name, 10);
    owners.leave(name);
  }
  EXPECT_EQ(owners.counter("999"), 0);
}

}  // namespace
}  // namespace kvasir::sched
