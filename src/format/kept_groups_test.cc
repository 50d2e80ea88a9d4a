// Which groups a budget keeps, and how they are given back.
#include "format/kept_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvasir {
namespace {

constexpr size_t kPage = 4096, kGroup = 10 * kPage;

std::vector<size_t> ten_groups() { return std::vector<size_t>(10, kGroup); }

// The groups that use() has memory for; each use is over.
std::vector<int> kept(KeptGroups& groups) {
  std::vector<int> kept;
  for (int g = 0; g < 10; ++g) {
    if (groups.use(g).memory != nullptr) kept.push_back(g);
    groups.done(g);
  }
  return kept;
}

TEST(KeptGroups, KeepsNothingWithoutALimit) {
  for (const auto& budget : {std::shared_ptr<Budget>(), Budget::create(0)}) {
    KeptGroups groups(ten_groups(), budget);
    groups.plan();
    EXPECT_THAT(kept(groups), testing::IsEmpty());
  }
}

TEST(KeptGroups, TakesExactlyWhatIsLeftAndLiesFarApart) {
  const auto budget = Budget::create(5 * kGroup + kPage);
  const auto other = budget->take(kGroup, "sequences", "", "");
  KeptGroups groups(ten_groups(), budget);
  groups.plan();
  EXPECT_EQ(budget->left(), kPage) << "reserved before it is allocated";
  EXPECT_EQ(groups.bytes(), 0u);
  const std::vector<int> four = kept(groups);
  ASSERT_EQ(four.size(), 4u);
  EXPECT_EQ(groups.bytes(), 4 * kGroup);
  for (size_t i = 1; i < 4; ++i) EXPECT_GE(four[i] - four[i - 1], 2) << testing::PrintToString(four);
}

TEST(KeptGroups, MemoryIsFreshOnceAndStays) {
  const auto budget = Budget::create(20 * kGroup);
  KeptGroups groups(ten_groups(), budget);
  groups.plan();
  const auto first = groups.use(3);
  EXPECT_TRUE(first.fresh);
  first.memory[5] = std::byte{77};
  groups.done(3);
  groups.plan();
  const auto again = groups.use(3);
  EXPECT_FALSE(again.fresh);
  EXPECT_EQ(again.memory[5], std::byte{77});
}

TEST(KeptGroups, GivesBackWhatIsNotInUse) {
  const auto budget = Budget::create(10 * kGroup);
  KeptGroups groups(ten_groups(), budget);
  groups.plan();
  ASSERT_EQ(kept(groups).size(), 10u);
  ASSERT_NE(groups.use(7).memory, nullptr);
  EXPECT_EQ(groups.spare_bytes(), 9 * kGroup);
  EXPECT_TRUE(groups.give_back(2 * kGroup - 1));
  EXPECT_EQ(budget->left(), 2 * kGroup);
  EXPECT_EQ(groups.bytes(), 8 * kGroup);
  EXPECT_TRUE(groups.give_back(SIZE_MAX));
  EXPECT_FALSE(groups.give_back(1)) << "only the group in use is left";
  EXPECT_EQ(budget->left(), 9 * kGroup);
  EXPECT_TRUE(groups.has(7));
}

TEST(KeptGroups, AGroupThatLostItsRoomGoesWhenItsUseEnds) {
  const auto budget = Budget::create(10 * kGroup);
  KeptGroups groups(ten_groups(), budget);
  groups.plan();
  for (int g = 0; g < 10; ++g) ASSERT_NE(groups.use(g).memory, nullptr);
  for (int g = 0; g < 9; ++g) groups.done(g);
  EXPECT_TRUE(groups.give_back(SIZE_MAX));
  const auto sequence = budget->take(9 * kGroup, "sequences", "", "");
  ASSERT_TRUE(sequence);
  groups.plan();
  EXPECT_TRUE(groups.has(9));
  groups.done(9);
  EXPECT_FALSE(groups.has(9));
  groups.plan();
  EXPECT_EQ(kept(groups).size(), 1u);
}

}  // namespace
}  // namespace kvasir
