// Each sampler against a second, slow implementation of its definition: penalties, DRY, typical, XTC, bias, constraint;
// and log probabilities. chain_test.cc has the older samplers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <kvasir/sampling.h>

#include "tests/support/plain_sampler.h"

namespace kvasir {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// ---- a slow sampler -----------------------------------------------------------------------------------------------

struct Token {
  int id;
  long double logit;
};
using Tokens = std::vector<Token>;

Tokens in_order(std::span<const float> row) {
  Tokens all;
  for (size_t i = 0; i < row.size(); ++i) all.push_back({static_cast<int>(i), row[i]});
  return all;
}

void sort(Tokens& all) {
  std::sort(all.begin(), all.end(),
            [](const Token& a, const Token& b) { return std::pair(-a.logit, a.id) < std::pair(-b.logit, b.id); });
}

std::vector<long double> probabilities(const Tokens& all) {
  std::vector<long double> p;
  long double most = -std::numeric_limits<long double>::infinity(), total = 0;
  for (const Token& t : all) most = std::max(most, t.logit);
  for (const Token& t : all) total += p.emplace_back(std::exp(t.logit - most));
  for (long double& x : p) x /= total;
  return p;
}

int drawn(Tokens all, const SamplingParams& params, int position) {
  sort(all);
  const auto p = probabilities(all);
  long double sum = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    sum += p[i];
    if (plain::uniform(params.seed, 0, position) < sum) return all[i].id;
  }
  return all.back().id;
}

void penalise(Tokens& all, const SamplingParams& p, std::vector<int> recent, size_t prompt) {
  std::map<int, int> generated;
  for (size_t i = prompt; i < recent.size(); ++i) ++generated[recent[i]];
  if (p.repeat_last_n >= 0 && recent.size() > static_cast<size_t>(p.repeat_last_n))
    recent.erase(recent.begin(), recent.end() - p.repeat_last_n);
  for (Token& t : all) {
    if (std::count(recent.begin(), recent.end(), t.id) > 0)
      t.logit =
          t.logit > 0 ? t.logit / static_cast<float>(p.repeat_penalty) : t.logit * static_cast<float>(p.repeat_penalty);
    if (generated[t.id] > 0) t.logit -= p.presence_penalty + p.frequency_penalty * generated[t.id];
  }
}

// Length of the longest suffix of the text that also occurs earlier, followed there by `id`.
int repeated_length(const std::vector<int>& text, int id) {
  int longest = 0;
  const int n = static_cast<int>(text.size());
  for (int place = 1; place < n; ++place) {
    if (text[static_cast<size_t>(place)] != id) continue;
    int length = 0;
    while (length < place && text[static_cast<size_t>(place - 1 - length)] == text[static_cast<size_t>(n - 1 - length)])
      ++length;
    longest = std::max(longest, length);
  }
  return longest;
}

void dry(Tokens& all, const SamplingParams& p, std::vector<int> recent) {
  if (p.dry_penalty_last_n >= 0 && recent.size() > static_cast<size_t>(p.dry_penalty_last_n))
    recent.erase(recent.begin(), recent.end() - p.dry_penalty_last_n);
  for (Token& t : all)
    if (const int length = repeated_length(recent, t.id); length >= p.dry_allowed_length)
      t.logit -= p.dry_multiplier * std::pow(p.dry_base, length - p.dry_allowed_length);
}

Tokens typical(Tokens all, double mass) {
  sort(all);
  const auto p = probabilities(all);
  long double entropy = 0;
  for (long double x : p) entropy -= x * std::log(x);
  std::vector<std::pair<long double, size_t>> by_oddity;
  for (size_t i = 0; i < p.size(); ++i) by_oddity.emplace_back(std::fabs(-std::log(p[i]) - entropy), i);
  std::sort(by_oddity.begin(), by_oddity.end());
  Tokens kept;
  long double sum = 0;
  for (const auto& [oddity, i] : by_oddity) {
    if (!kept.empty() && sum >= mass) break;
    sum += p[i];
    kept.push_back(all[i]);
  }
  return kept;
}

Tokens exclude_top_choices(Tokens all, const SamplingParams& params, int position) {
  if (plain::uniform(params.seed, 0, position, 1) >= params.xtc_probability) return all;
  sort(all);
  const auto p = probabilities(all);
  const auto likely = std::count_if(p.begin(), p.end(), [&](long double x) { return x >= params.xtc_threshold; });
  if (likely > 1) all.erase(all.begin(), all.begin() + likely - 1);
  return all;
}

// ---- random cases -------------------------------------------------------------------------------------------------

class Cases {
 public:
  explicit Cases(uint32_t seed) : random_(seed) {}
  template <class T>
  T pick(std::initializer_list<T> values) {
    return values.begin()[random_() % values.size()];
  }
  std::vector<float> row() {
    std::vector<float> x(static_cast<size_t>(pick({1, 2, 7, 60, 300})));
    std::normal_distribution<float> normal(0, pick({0.5f, 2.0f, 4.0f}));
    for (float& v : x) v = normal(random_);
    return x;
  }
  // Few distinct tokens, so that many repeat; one is outside the vocabulary.
  std::vector<int> text() {
    std::vector<int> ids(random_() % 40);
    const auto most = static_cast<uint32_t>(pick({2, 3, 8}));
    for (int& id : ids) id = static_cast<int>(random_() % most);
    if (ids.size() > 5) ids[3] = 5000;
    return ids;
  }
  size_t below(size_t n) { return random_() % n; }

 private:
  std::mt19937 random_;
};

TEST(Samplers, PenaltiesAreWhatTheyAreDefinedToBe) {
  Cases cases(1);
  for (int i = 0; i < 2000; ++i) {
    const auto row = cases.row();
    const auto text = cases.text();
    const size_t prompt = cases.below(text.size() + 1);
    SamplingParams p = plain::off();
    p.temperature = cases.pick({0.0, 1.0});
    p.repeat_penalty = cases.pick({1.0, 1.0, 1.4, 0.6});
    p.repeat_last_n = cases.pick({0, 3, 64, -1});
    p.presence_penalty = cases.pick({0.0, 0.9, -0.7});
    p.frequency_penalty = cases.pick({0.0, 0.21, -0.3});
    Tokens all = in_order(row);
    penalise(all, p, text, prompt);
    sort(all);
    const int expected = p.temperature == 0 ? all[0].id : drawn(all, p, i);
    ASSERT_EQ(*sample(row, p, {.recent = text, .prompt_tokens = prompt, .position = i}), expected) << "case " << i;
  }
}

TEST(Samplers, DryIsWhatItIsDefinedToBe) {
  Cases cases(2);
  int changed = 0;
  for (int i = 0; i < 2000; ++i) {
    const auto row = cases.row();
    const auto text = cases.text();
    SamplingParams p = plain::off();
    p.temperature = cases.pick({0.0, 1.0});
    p.dry_multiplier = cases.pick({0.4, 0.8, 3.0});
    p.dry_base = cases.pick({1.0, 1.75, 3.0});
    p.dry_allowed_length = cases.pick({1, 2, 4});
    p.dry_penalty_last_n = cases.pick({-1, 0, 10, 1000});
    Tokens all = in_order(row);
    sort(all);
    const int without = p.temperature == 0 ? all[0].id : drawn(all, p, i);
    dry(all, p, text);
    sort(all);
    const int expected = p.temperature == 0 ? all[0].id : drawn(all, p, i);
    ASSERT_EQ(*sample(row, p, {.recent = text, .position = i}), expected) << "case " << i;
    changed += expected != without ? 1 : 0;
  }
  EXPECT_GT(changed, 100);
}

TEST(Samplers, DryBetweenManyRepeatsDoesNotOverflow) {
  const std::vector<int> text(5000, 1);
  SamplingParams p = plain::off();
  p.dry_multiplier = 100;
  p.dry_base = 100;
  EXPECT_EQ(*sample(std::vector<float>{1, 9, 2}, p, {.recent = text}),
            0 + *sample(std::vector<float>{1, -1e30f, 2}, p));
}

TEST(Samplers, TypicalIsWhatItIsDefinedToBe) {
  Cases cases(3);
  int without_the_best = 0;
  for (int i = 0; i < 2000; ++i) {
    const auto row = cases.row();
    SamplingParams p = plain::off();
    p.typical_p = cases.pick({0.0, 0.2, 0.5, 0.95});
    const Tokens kept = typical(in_order(row), p.typical_p);
    ASSERT_EQ(*sample(row, p, {.position = i}), drawn(kept, p, i)) << "case " << i;
    Tokens all = in_order(row);
    sort(all);
    without_the_best += std::none_of(kept.begin(), kept.end(), [&](const Token& t) { return t.id == all[0].id; });
  }
  EXPECT_GT(without_the_best, 50) << "where the most likely token is no typical one";
}

TEST(Samplers, XtcIsWhatItIsDefinedToBe) {
  Cases cases(4);
  int changed = 0;
  for (int i = 0; i < 2000; ++i) {
    const auto row = cases.row();
    SamplingParams p = plain::off();
    p.seed = static_cast<uint64_t>(i) << 30;
    p.xtc_probability = cases.pick({0.0, 0.3, 1.0});
    p.xtc_threshold = cases.pick({0.0, 0.05, 0.1, 0.5});
    const Tokens kept = exclude_top_choices(in_order(row), p, i);
    ASSERT_EQ(*sample(row, p, {.position = i}), drawn(kept, p, i)) << "case " << i;
    changed += kept.size() < row.size() ? 1 : 0;
  }
  EXPECT_GT(changed, 300);
  SamplingParams p = plain::off();
  p.xtc_probability = 1;
  p.xtc_threshold = 0.6;  // two tokens cannot both reach it
  EXPECT_EQ(*sample(std::vector<float>{9, 0}, p), 0);
}

// ---- bias and constraint ------------------------------------------------------------------------------------------

TEST(Samplers, BiasIsAddedToRawLogits) {
  SamplingParams p{.temperature = 0};
  const std::vector<float> row = {1, 3, 2, -4};
  p.logit_bias = {{3, 7.5f}};
  EXPECT_EQ(*sample(row, p), 3);
  p.logit_bias = {{3, 6.75f}};
  EXPECT_EQ(*sample(row, p), 1);
  p.logit_bias = {{1, -100}, {2, -1000}};
  EXPECT_EQ(*sample(row, p), 0) << "banned";
  p.logit_bias = {{1, -99}, {2, -std::numeric_limits<float>::infinity()}, {0, -100}, {3, -100}};
  EXPECT_EQ(*sample(row, p), 1) << "-99 is no ban";
  p.logit_bias = {{2, 2.5f}};
  p.repeat_penalty = 2;  // of the biased logit: 4.5 / 2
  EXPECT_EQ(*sample(row, p, {.recent = std::vector<int>{2}}), 1);

  p.logit_bias = {{4, 1}};
  const auto outside = sample(row, p);
  ASSERT_FALSE(outside);
  EXPECT_EQ(outside.error().kind, Error::bad_argument);
  EXPECT_EQ(outside.error().where, "SamplingParams::logit_bias");
  EXPECT_THAT(outside.error().message(), HasSubstr("token 4"));
  p.logit_bias = {{0, -100}, {1, -100}, {2, -100}, {3, -100}};
  EXPECT_EQ(sample(row, p).error().where, "SamplingParams::logit_bias");
}

class Allow : public Constraint {
 public:
  explicit Allow(std::set<int> ids) : ids_(std::move(ids)) {}
  void allow(std::span<uint64_t> mask) override {
    words = mask.size();
    for (uint64_t word : mask) clean = clean && word == 0;
    for (int id : ids_) mask[static_cast<size_t>(id) / 64] |= uint64_t{1} << (id % 64);
  }
  void accept(int) override { accepted = true; }
  std::unique_ptr<Constraint> clone() const override { return std::make_unique<Allow>(*this); }

  size_t words = 0;
  bool clean = true, accepted = false;

 private:
  std::set<int> ids_;
};

TEST(Samplers, OnlyWhatTheConstraintAllows) {
  std::vector<float> row(150);
  for (size_t i = 0; i < row.size(); ++i) row[i] = static_cast<float>(i % 50) * 0.125f;
  Allow some({3, 70, 149});
  for (const double temperature : {0.0, 3.0}) {
    std::set<int> chosen;
    SamplingParams p{.temperature = temperature, .top_k = 0, .top_p = 1, .min_p = 0};
    for (int i = 0; i < 2000; ++i) chosen.insert(*sample(row, p, {.position = i, .constraint = &some}));
    EXPECT_EQ(chosen, temperature == 0 ? std::set<int>({149}) : std::set<int>({3, 70, 149}));
  }
  EXPECT_EQ(some.words, 3u);
  EXPECT_TRUE(some.clean);
  EXPECT_FALSE(some.accepted) << "that is the caller's";
  EXPECT_FALSE(some.done());

  SamplingParams p;
  p.samplers = {"top_k"};  // the constraint still runs
  p.top_k = 1;
  EXPECT_EQ(*sample(row, p, {.constraint = &some}), 149);
  p.samplers = {"top_k", "constraint"};  // after top-k, which kept a forbidden token
  const auto none = sample(row, p, {.constraint = &some});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, Error::bad_argument);
  EXPECT_EQ(none.error().where, "SampleContext::constraint");
  Allow nothing({});
  EXPECT_FALSE(sample(row, {.temperature = 0}, {.constraint = &nothing}));
}

// ---- the chain ----------------------------------------------------------------------------------------------------

TEST(Samplers, AreListedInTheirOrder) {
  std::vector<std::string> names;
  for (const SamplerInfo& sampler : samplers()) {
    names.emplace_back(sampler.name);
    EXPECT_FALSE(sampler.summary.empty());
    for (const SamplerParam& param : sampler.params) {
      EXPECT_FALSE(param.summary.empty()) << param.name;
      EXPECT_EQ(value_of(SamplingParams{}, param), param.preset) << param.name;
      SamplingParams p;
      set_value(p, param, param.least);
      EXPECT_EQ(value_of(p, param), param.least) << param.name;
      EXPECT_TRUE(check_sampling(p)) << param.name;
      set_value(p, param, param.greatest + 1);
      const auto refused = check_sampling(p);
      ASSERT_FALSE(refused) << param.name;
      EXPECT_EQ(refused.error().kind, Error::bad_argument);
      EXPECT_EQ(refused.error().where, "SamplingParams::" + std::string(param.name));
    }
  }
  EXPECT_THAT(names, ElementsAre("logit_bias", "constraint", "penalties", "dry", "top_k", "typ_p", "top_p", "min_p",
                                 "xtc", "temperature"));
}

TEST(Samplers, RunInTheOrderThatIsAskedFor) {
  std::vector<float> row;
  for (double p : {0.6, 0.3, 0.1}) row.push_back(static_cast<float>(std::log(p)));
  const auto chosen = [&row](std::vector<std::string> names) {
    SamplingParams p{.temperature = 50, .top_k = 0, .top_p = 0.55, .min_p = 0};
    p.samplers = std::move(names);
    std::set<int> ids;
    for (int i = 0; i < 300; ++i) ids.insert(*sample(row, p, {.position = i}));
    return ids.size();
  };
  EXPECT_EQ(chosen({}), 1u);
  EXPECT_EQ(chosen({"top_p", "temperature"}), 1u);
  EXPECT_EQ(chosen({"temperature", "top_p"}), 2u) << "of three nearly equal ones";
  EXPECT_EQ(chosen({"temperature"}), 3u);
}

TEST(Samplers, UnknownNamesAreRefused) {
  SamplingParams p;
  p.samplers = {"top_k", "nosuch"};
  EXPECT_THAT(check_sampling(p).error().message(), HasSubstr("\"nosuch\" is not a sampler (try: logit_bias, "));
  EXPECT_FALSE(sample(std::vector<float>{1, 2}, p));
  p.samplers = {"top_k", "top_k"};
  EXPECT_THAT(check_sampling(p).error().message(), HasSubstr("named twice"));
  p = {};
  p.more = {{"nosuch", 1}};
  EXPECT_EQ(check_sampling(p).error().where, "SamplingParams::more");
  p.more = {{"top_k", 1}};  // top_k has a field of its own
  EXPECT_FALSE(check_sampling(p));
  p = {};
  p.logit_bias = {{-1, 2}};
  EXPECT_EQ(check_sampling(p).error().where, "SamplingParams::logit_bias");
  p.logit_bias = {{1, std::nanf("")}};
  EXPECT_FALSE(check_sampling(p));
}

// ---- log probabilities --------------------------------------------------------------------------------------------

TEST(Logprobs, AreThoseOfTheSoftmax) {
  Cases cases(5);
  for (int i = 0; i < 500; ++i) {
    const auto row = cases.row();
    Tokens all = in_order(row);
    const auto p = probabilities(all);
    const size_t id = cases.below(row.size());
    const TokenLogprob got = logprobs_of(row, static_cast<int>(id), 5);
    EXPECT_EQ(got.id, static_cast<int>(id));
    EXPECT_NEAR(got.logprob, static_cast<double>(std::log(p[id])), 1e-13);
    sort(all);
    ASSERT_EQ(got.top.size(), std::min<size_t>(5, row.size()));
    for (size_t k = 0; k < got.top.size(); ++k) {
      EXPECT_EQ(got.top[k].first, all[k].id);
      EXPECT_NEAR(got.top[k].second, static_cast<double>(std::log(p[static_cast<size_t>(all[k].id)])), 1e-13);
    }
  }
  EXPECT_TRUE(logprobs_of(std::vector<float>{1, 2}, 0, 0).top.empty());
  EXPECT_THAT(logprobs_of(std::vector<float>{2, 5, 5}, 0, 2).top[0].first, 1) << "the lowest id among equals";
}

}  // namespace
}  // namespace kvasir
