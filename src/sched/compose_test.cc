// Which sequences are in the next pass, and with how many tokens.
#include "sched/compose.h"

#include <gmock/gmock.h>

#include <numeric>
#include <random>

namespace kvasir::sched {
namespace {

using testing::ElementsAre;

TEST(Compose, EveryoneWhoDecodesIsThere) {
  const Need needs[] = {{1, 3}, {1, 1}, {1, 2}};
  EXPECT_THAT(compose(needs, 0), ElementsAre(1, 1, 1));
}

TEST(Compose, OnePromptTakesAllTheRoom) {
  const Need needs[] = {{1, 1}, {4000, 2}};
  EXPECT_THAT(compose(needs, 128), ElementsAre(1, 128));
  EXPECT_THAT(compose(needs, 5000), ElementsAre(1, 4000));
}

TEST(Compose, AShortPromptDoesNotWaitForALongOne) {
  const Need needs[] = {{4000, 1}, {20, 2}};
  EXPECT_THAT(compose(needs, 256), ElementsAre(236, 20));
}

TEST(Compose, TheOldestMovesHoweverManyShortOnesCome) {
  const Need needs[] = {{4000, 1}, {60, 4}, {50, 3}, {40, 2}};
  EXPECT_THAT(compose(needs, 128), ElementsAre(88, 0, 0, 40)) << "64 for the oldest; 40 fit the rest, 50 more do not";
}

TEST(Compose, PromptsThatDoNotEndGoByAge) {
  const Need needs[] = {{300, 5}, {400, 1}, {500, 3}};
  EXPECT_THAT(compose(needs, 450), ElementsAre(0, 400, 50));
}

TEST(Compose, RandomPassesAreFullAndWithinTheirRoom) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::vector<Need> needs;
    for (auto n = random() % 20; n > 0; --n)
      needs.push_back({random() % 3 == 0 ? 1 : 2 + static_cast<int>(random() % 500), random()});
    const int room = static_cast<int>(random() % 300);
    const auto tokens = compose(needs, room);
    int decoding = 0, wanted = 0, given = 0;
    for (size_t i = 0; i < needs.size(); ++i) {
      ASSERT_GE(tokens[i], needs[i].tokens == 1 ? 1 : 0);
      ASSERT_LE(tokens[i], needs[i].tokens);
      if (needs[i].tokens == 1)
        ++decoding;
      else
        wanted += needs[i].tokens, given += tokens[i];
    }
    ASSERT_EQ(given, std::min(wanted, room));
    ASSERT_EQ(std::accumulate(tokens.begin(), tokens.end(), 0), given + decoding);
  }
}

}  // namespace
}  // namespace kvasir::sched
