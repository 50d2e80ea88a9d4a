// Whether the times of passes are learned, and the number of tokens that fit into a time.
#include "sched/pace.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace kvasir::sched {
namespace {

double time_of(const PassShape& pass) {
  return 0.004 + 0.0011 * pass.tokens + 3e-7 * static_cast<double>(pass.positions);
}

PassShape some_pass(std::mt19937& random) {
  const int tokens = 1 + static_cast<int>(random() % 256);
  return {tokens, static_cast<int64_t>(tokens) * static_cast<int64_t>(random() % 4000)};
}

TEST(Pace, LearnsTheThreeFactors) {
  std::mt19937 random(1);
  std::normal_distribution<double> noise(1.0, 0.1);
  Pace pace;
  EXPECT_FALSE(pace.knows());
  for (int i = 0; i < 200; ++i) {
    const PassShape pass = some_pass(random);
    pace.add(pass, time_of(pass) * noise(random));
  }
  for (int i = 0; i < 100; ++i) {
    const PassShape pass = some_pass(random);
    EXPECT_NEAR(pace.predict(pass) / time_of(pass), 1.0, 0.15) << pass.tokens << " " << pass.positions;
  }
}

TEST(Pace, FollowsAMachineThatBecomesSlower) {
  std::mt19937 random(2);
  Pace pace;
  for (int i = 0; i < 200; ++i) {
    const PassShape pass = some_pass(random);
    pace.add(pass, time_of(pass));
  }
  for (int i = 0; i < 200; ++i) {
    const PassShape pass = some_pass(random);
    pace.add(pass, 3 * time_of(pass));
  }
  const PassShape pass{100, 50000};
  EXPECT_NEAR(pace.predict(pass) / (3 * time_of(pass)), 1.0, 0.1);
}

TEST(Pace, PromptTokensFitTheTime) {
  std::mt19937 random(3);
  Pace pace;
  EXPECT_EQ(pace.prompt_tokens(0.1, {8, 8000}, 0, 256), 64) << "nothing is known yet";
  EXPECT_EQ(pace.prompt_tokens(0.1, {8, 8000}, 0, 10), 10);
  for (int i = 0; i < 200; ++i) {
    const PassShape pass = some_pass(random);
    pace.add(pass, time_of(pass));
  }
  const PassShape others{8, 8000};
  int last = 257;
  for (const int64_t depth : {0, 1000, 3000, 10000}) {
    const int tokens = pace.prompt_tokens(0.1, others, depth, 256);
    EXPECT_EQ(tokens % 16, 0);
    EXPECT_LT(tokens, last) << "a deeper prompt costs more a token";
    last = tokens;
    const auto with = [&](int n) { return time_of({8 + n, 8000 + n * depth + n * (n + 1) / 2}); };
    EXPECT_LE(with(tokens), 0.105);
    EXPECT_GT(with(tokens + 32), 0.095);
  }
  EXPECT_EQ(pace.prompt_tokens(0.001, others, 3000, 256), 16) << "a prompt always moves";
  EXPECT_EQ(pace.prompt_tokens(10, others, 0, 256), 256);
}

// Passes of one shape do not determine the three factors; none of them may become extreme.
TEST(Pace, OneShapeGivesItsTime) {
  Pace pace;
  for (int i = 0; i < 100; ++i) pace.add({16, 16000 + 16 * i}, 0.03);
  EXPECT_NEAR(pace.predict({16, 17000}), 0.03, 0.001);
  EXPECT_LT(pace.predict({32, 34000}), 0.07);
}

}  // namespace
}  // namespace kvasir::sched
