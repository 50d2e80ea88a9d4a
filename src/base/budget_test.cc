// Reservations, and the refusal of one that is too large.
#include "base/budget.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <thread>
#include <vector>

namespace kvasir {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(Budget, PromisesUntilNothingIsLeft) {
  const auto budget = Budget::create(1000);
  EXPECT_EQ(budget->left(), 1000u);
  auto weights = budget->take(600, "weights", "weights need", "less");
  ASSERT_TRUE(weights);
  auto first = budget->take(300, "sequences", "a sequence needs", "less");
  ASSERT_TRUE(first);
  EXPECT_EQ(budget->left(), 100u);
  const auto refused = budget->take(101, "sequences", "a sequence of 7 needs", "a shorter one");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(),
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

}  // namespace
}  // namespace kvasir
