// The chain and its older samplers, against a plain implementation in double with its own random generator, and rule by
// rule. samplers_test.cc has the other samplers, candidates_test.cc long rows.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "base/float_env.h"
#include "tests/support/engines.h"
#include "tests/support/plain_sampler.h"

namespace kvasir {
namespace {

using engine_test::AllOf;
using engine_test::HasSubstr;
using engine_test::message_of;
using plain::philox;
using plain::uniform;

// ---- random numbers --------------------------------------------------------------------------------------------

// Random123's published vectors.
TEST(Sampler, TheTestsOwnGeneratorGivesTheKnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (std::array<uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

const SamplingParams kPlain = plain::off();

// Among 2^16 equal logits the id spells the first 16 bits of the draw.
TEST(Sampler, DrawsTheKnownAnswer) {
  const std::vector<float> equal(1 << 16, 0.5f);
  const auto first16 = [&](uint64_t seed, int position, int choice) {
    SamplingParams p = kPlain;
    p.seed = seed;
    return static_cast<uint32_t>(*sample(equal, p, {.position = position, .choice = choice}));
  };
  EXPECT_EQ(first16(0, 0, 0), 0x6627e8d5u >> 16);
  for (const auto& [seed, position, choice] : {std::tuple<uint64_t, int, int>{1, 0, 0},
                                               {0, 1, 0},
                                               {0, 0, 1},
                                               {0x123456789abcdef0u, 77, 5},
                                               {~uint64_t{0}, 1 << 30, 3}}) {
    const auto x = philox({static_cast<uint32_t>(position), static_cast<uint32_t>(choice), 0, 0},
                          {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
    EXPECT_EQ(first16(seed, position, choice), x[0] >> 16);
  }
}

// ---- the plain implementation -----------------------------------------------------------------------------------

int expected_token(std::vector<float> logits, const SamplingParams& p, const std::vector<int>& recent, int position,
                   int choice) {
  const size_t back = std::min(recent.size(), static_cast<size_t>(p.repeat_last_n));
  for (int id : std::set<int>(recent.end() - static_cast<std::ptrdiff_t>(back), recent.end())) {
    float& x = logits[static_cast<size_t>(id)];
    x = x > 0 ? x / static_cast<float>(p.repeat_penalty) : x * static_cast<float>(p.repeat_penalty);
  }
  std::vector<int> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto logit = [&](int id) { return static_cast<double>(logits[static_cast<size_t>(id)]); };
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return logit(a) > logit(b); });
  if (p.temperature == 0) return order[0];
  if (p.top_k > 0) order.resize(std::min(order.size(), static_cast<size_t>(p.top_k)));
  double total = 0, sum = 0;
  for (int id : order) total += std::exp(logit(id) - logit(order[0]));
  std::vector<int> kept;
  for (int id : order) {  // the fewest whose probabilities sum to top_p
    if (!kept.empty() && sum / total >= p.top_p) break;
    sum += std::exp(logit(id) - logit(order[0]));
    kept.push_back(id);
  }
  std::erase_if(kept, [&](int id) { return id != order[0] && std::exp(logit(id) - logit(order[0])) < p.min_p; });
  total = sum = 0;
  for (int id : kept) total += std::exp((logit(id) - logit(kept[0])) / p.temperature);
  for (int id : kept) {
    sum += std::exp((logit(id) - logit(kept[0])) / p.temperature);
    if (uniform(p.seed, choice, position) < sum / total) return id;
  }
  return kept.back();
}

TEST(Sampler, EqualsAPlainImplementation) {
  std::set<int> chosen;
  for (int i = 0; i < 4000; ++i) {
    const auto pick = [&](int salt, std::initializer_list<double> values) {
      const double u = static_cast<double>(tiny::noise(static_cast<uint64_t>(i * 31 + salt)) + 1) / 2;
      return values.begin()[static_cast<size_t>(u * static_cast<double>(values.size()))];
    };
    const int vocab = static_cast<int>(pick(1, {1, 2, 5, 50, 300}));
    std::vector<float> logits;
    for (int id = 0; id < vocab; ++id) logits.push_back(6 * tiny::noise(static_cast<uint64_t>(i * 1000 + id)));
    if (vocab > 4) logits[3] = logits[1];  // a tie
    const SamplingParams p{.temperature = pick(2, {0, 0.3, 0.8, 1, 2.5}),
                           .top_k = static_cast<int>(pick(3, {0, 1, 3, 40})),
                           .top_p = pick(4, {0, 0.3, 0.9, 1}),
                           .min_p = pick(5, {0, 0.05, 0.5, 1}),
                           .repeat_penalty = pick(6, {1, 1.3, 0.7}),
                           .repeat_last_n = static_cast<int>(pick(7, {0, 2, 64, -1})),
                           .seed = static_cast<uint64_t>(i) * 0x9e3779b97f4a7c15u};
    const std::vector<int> recent = tiny::ids(static_cast<int>(pick(8, {0, 1, 7})), static_cast<uint64_t>(i), vocab);
    const auto id = sample(logits, p, {.recent = recent, .position = i, .choice = i % 3});
    ASSERT_TRUE(id) << message_of(id);
    ASSERT_EQ(*id, expected_token(logits, p, recent, i, i % 3)) << "case " << i;
    chosen.insert(*id);
  }
  EXPECT_GT(chosen.size(), 50u);
}

// ---- rules ------------------------------------------------------------------------------------------------------

TEST(Sampler, GreedyTakesTheLargestAndTheLowestIdAmongEquals) {
  const SamplingParams p = engine_test::greedy();
  EXPECT_EQ(*sample(std::vector<float>{1, 3, 2}, p), 1);
  EXPECT_EQ(*sample(std::vector<float>{1, 3, 3, 3}, p), 1);
  EXPECT_EQ(*sample(std::vector<float>{-0.0f, 0.0f}, p), 0) << "zeros of both signs are equal";
  EXPECT_EQ(*sample(std::vector<float>{-5}, p), 0);
}

std::map<int, int> counts(const std::vector<float>& logits, const SamplingParams& p, int draws) {
  std::map<int, int> out;
  for (int i = 0; i < draws; ++i) ++out[*sample(logits, p, {.position = i})];
  return out;
}

std::vector<float> logs(std::initializer_list<double> probabilities) {
  std::vector<float> out;
  for (double p : probabilities) out.push_back(static_cast<float>(std::log(p)));
  return out;
}

// The result of each case would differ if two of the filters swapped places.
TEST(Sampler, FiltersApplyInTheirOrder) {
  SamplingParams p = kPlain;
  p.top_k = 2;
  p.top_p = 0.65;  // of what top-k kept, 0.4 is two thirds already
  EXPECT_EQ(counts(logs({0.4, 0.2, 0.2, 0.2}), p, 300).size(), 1u);
  p = kPlain;
  p.top_p = 0.55;  // before temperature, which would spread the probability
  p.temperature = 50;
  EXPECT_EQ(counts(logs({0.6, 0.3, 0.1}), p, 300).size(), 1u);
  p = kPlain;
  p.min_p = 0.4;  // of the largest probability before temperature
  p.temperature = 50;
  EXPECT_EQ(counts(logs({0.6, 0.3, 0.1}), p, 300).size(), 2u);
  p = kPlain;
  p.repeat_penalty = 10;  // before top-k: the penalised token loses its place
  p.top_k = 1;
  EXPECT_EQ(*sample(std::vector<float>{2, 1.5f, 1}, p, {.recent = std::vector<int>{0}}), 1);
}

TEST(Sampler, PenaltyDividesOrMultipliesOncePerRecentId) {
  SamplingParams p = engine_test::greedy();
  p.repeat_penalty = 2;
  EXPECT_EQ(*sample(std::vector<float>{3, 2}, p, {.recent = std::vector<int>{0, 0, 0}}), 1);
  EXPECT_EQ(*sample(std::vector<float>{5, 2}, p, {.recent = std::vector<int>{0, 0, 0}}), 0) << "once, not three times";
  EXPECT_EQ(*sample(std::vector<float>{-1, -1.5f}, p, {.recent = std::vector<int>{0}}), 1)
      << "below zero it multiplies";
  p.repeat_last_n = 2;
  EXPECT_EQ(*sample(std::vector<float>{3, 2, 0}, p, {.recent = std::vector<int>{0, 2, 2}}), 0) << "too long ago";
  p.repeat_last_n = 0;
  EXPECT_EQ(*sample(std::vector<float>{3, 2, 0}, p, {.recent = std::vector<int>{0}}), 0);
  EXPECT_EQ(*sample(std::vector<float>{3, 2}, p, {.recent = std::vector<int>{-7, 900}}), 0)
      << "ids of another vocabulary";
}

TEST(Sampler, SameSeedAndPositionGiveTheSameToken) {
  std::vector<float> logits;
  for (int i = 0; i < 200; ++i) logits.push_back(tiny::noise(static_cast<uint64_t>(i)));
  SamplingParams p = kPlain;
  std::set<std::vector<int>> sequences;
  for (uint64_t seed : {0u, 1u, 2u})
    for (int choice : {0, 1, 2}) {
      p.seed = seed;
      std::vector<int> a, b;
      for (int i = 0; i < 30; ++i) a.push_back(*sample(logits, p, {.position = i, .choice = choice}));
      for (int i = 29; i >= 0; --i) b.push_back(*sample(logits, p, {.position = i, .choice = choice}));
      EXPECT_TRUE(std::equal(a.begin(), a.end(), b.rbegin())) << "whatever the order of the calls";
      sequences.insert(a);
    }
  EXPECT_EQ(sequences.size(), 9u);
  p.seed = uint64_t{1} << 32;
  EXPECT_NE(*sample(logits, p), *sample(logits, kPlain)) << "the upper half of the seed counts";
}

TEST(Sampler, FrequenciesOf20000Draws) {
  const std::vector<double> probabilities = {0.4, 0.25, 0.15, 0.1, 0.06, 0.03, 0.01};
  std::vector<float> logits;
  for (double p : probabilities) logits.push_back(static_cast<float>(std::log(p)));
  const auto seen = counts(logits, kPlain, 20000);
  double chi_square = 0;
  for (size_t id = 0; id < probabilities.size(); ++id) {
    const double expected = 20000 * probabilities[id];
    const auto it = seen.find(static_cast<int>(id));
    const double off = (it == seen.end() ? 0 : it->second) - expected;
    chi_square += off * off / expected;
  }
  EXPECT_LT(chi_square, 22.46) << "1 in 1,000 for 6 degrees of freedom";
}

TEST(Sampler, NonFiniteLogitsAndNoneAreErrors) {
  for (float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                    -std::numeric_limits<float>::infinity()})
    for (const SamplingParams& p : {kPlain, engine_test::greedy()})
      EXPECT_THAT(message_of(sample(std::vector<float>{1, 2, bad, 3}, p)),
                  AllOf(HasSubstr("token 2"), HasSubstr("finite")));
  EXPECT_THAT(message_of(sample({}, kPlain)), HasSubstr("no logits"));
}

TEST(Sampler, RangesAreChecked) {
  EXPECT_TRUE(check_sampling(SamplingParams{}));
  EXPECT_TRUE(check_sampling(kPlain));
  const auto refused = [](auto change, const char* name, const char* value) {
    SamplingParams p;
    change(p);
    EXPECT_THAT(message_of(check_sampling(p)), AllOf(HasSubstr(name), HasSubstr(value)));
  };
  refused([](SamplingParams& p) { p.temperature = -0.5; }, "SamplingParams::temperature", "-0.5");
  refused([](SamplingParams& p) { p.temperature = std::nan(""); }, "SamplingParams::temperature", "nan");
  refused([](SamplingParams& p) { p.top_k = -1; }, "SamplingParams::top_k", "-1");
  refused([](SamplingParams& p) { p.top_p = 1.5; }, "SamplingParams::top_p", "1.5");
  refused([](SamplingParams& p) { p.min_p = -0.25; }, "SamplingParams::min_p", "-0.25");
  refused([](SamplingParams& p) { p.repeat_penalty = 0; }, "SamplingParams::repeat_penalty", "0");
  refused([](SamplingParams& p) { p.repeat_last_n = -3; }, "SamplingParams::repeat_last_n", "-3");
}

TEST(Sampler, TheCallersFloatModesDoNotMatter) {
#if defined(__x86_64__)
  std::vector<float> logits;
  for (int i = 0; i < 3000; ++i) logits.push_back(20 * tiny::noise(static_cast<uint64_t>(i)));
  SamplingParams p = kPlain;
  p.temperature = 3;
  for (int i = 0; i < 50; ++i) {
    const int expected = *sample(logits, p, {.position = i});
    const unsigned saved = _mm_getcsr();
    _mm_setcsr(0x1f80 | 0x8040 | 0x4000);
    const auto id = sample(logits, p, {.position = i});
    _mm_setcsr(saved);
    EXPECT_EQ(*id, expected);
  }
#else
  GTEST_SKIP() << "written for x86";
#endif
}

}  // namespace
}  // namespace kvasir
