// Long rows: the same ids as sorting everything, whatever the row's shape, also when a sum is too close to decide.
#include "engine/sampling/candidates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <kvasir/sampling.h>

#include "engine/sampling/weight_sums.h"
#include "math/functions_f64.h"
#include "tests/support/plain_sampler.h"

namespace kvasir {
namespace {

// ---- the definition: sort everything, sum in order ----------------------------------------------------------------

std::vector<double> weights_in_order(std::span<const Candidate> sorted, double temperature) {
  std::vector<double> w;
  for (const Candidate& c : sorted)
    w.push_back(exp_f64((static_cast<double>(c.logit) - static_cast<double>(sorted[0].logit)) / temperature));
  return w;
}

std::vector<Candidate> filtered(std::span<const float> row, const SamplingParams& p) {
  std::vector<Candidate> all;
  for (size_t i = 0; i < row.size(); ++i) all.push_back({row[i], static_cast<int>(i)});
  std::sort(all.begin(), all.end(), better);
  if (p.top_k > 0) all.resize(std::min(all.size(), static_cast<size_t>(p.top_k)));
  const std::vector<double> w = weights_in_order(all, 1.0);
  size_t keep = w.size();
  if (p.top_p < 1.0) {
    double total = 0, sum = 0;
    for (double x : w) total += x;
    for (keep = 0; keep < w.size() && (keep == 0 || sum < p.top_p * total); ++keep) sum += w[keep];
  }
  while (keep > 1 && w[keep - 1] < p.min_p * w[0]) --keep;
  all.resize(keep);
  return all;
}

int by_full_sort(std::span<const float> row, const SamplingParams& p, int position) {
  const std::vector<Candidate> kept = filtered(row, p);
  if (p.temperature == 0) return kept[0].id;
  const std::vector<double> w = weights_in_order(kept, p.temperature);
  double total = 0, sum = 0;
  for (double x : w) total += x;
  const double u = plain::uniform(p.seed, 0, position);
  for (size_t i = 0; i < w.size(); ++i) {
    sum += w[i];
    if (u * total < sum) return kept[i].id;
  }
  return kept.back().id;
}

// ---- rows of many shapes ------------------------------------------------------------------------------------------

class Rows {
 public:
  explicit Rows(uint32_t seed) : random_(seed) {}

  template <class T>
  T pick(std::initializer_list<T> values) {
    return values.begin()[random_() % values.size()];
  }

  std::vector<float> row(size_t n) {
    std::vector<float> x(n);
    const float scale = pick({0.01f, 1.0f, 3.0f, 30.0f, 1e4f});
    std::normal_distribution<float> normal(pick({0.0f, -7.5f, 11.0f}), scale);
    for (float& v : x) v = normal(random_);
    switch (random_() % 6) {
      case 0:  // peaked like a language model's
        for (size_t i = 0; i < 40; ++i) x[random_() % n] = 5 * scale + 0.3f * scale * static_cast<float>(i % 17);
        break;
      case 1:  // many ties
        for (float& v : x) v = std::round(v / scale * pick({0.5f, 2.0f, 8.0f}));
        break;
      case 2:  // zeros of both signs, and a few others
        for (float& v : x) v = v > scale ? 0.5f : v > 0 ? 0.0f : -0.0f;
        break;
      case 3:  // the ends of the range
        x[random_() % n] = std::numeric_limits<float>::max();
        x[random_() % n] = std::numeric_limits<float>::lowest();
        break;
      default:
        break;
    }
    return x;
  }

  SamplingParams params(int i) {
    return {.temperature = pick({0.0, 0.1, 0.8, 0.8, 1.0, 1.7, 60.0}),
            .top_k = pick({0, 0, 0, 1, 40, 1500}),
            .top_p = pick({0.0, 0.1, 0.5, 0.95, 0.95, 0.999999, 1.0}),
            .min_p = pick({0.0, 0.0, 1e-30, 0.001, 0.05, 0.5, 1.0}),
            .seed = static_cast<uint64_t>(i) * 0x9e3779b97f4a7c15u};
  }

 private:
  std::mt19937 random_;
};

void expect_the_ids_of_full_sorts(int rows, uint32_t seed, std::initializer_list<size_t> lengths) {
  Rows random(seed);
  for (int i = 0; i < rows; ++i) {
    const std::vector<float> row = random.row(random.pick(lengths));
    const SamplingParams p = random.params(i);
    const auto id = sample(row, p, {.position = i});
    ASSERT_TRUE(id) << id.error().message();
    ASSERT_EQ(*id, by_full_sort(row, p, i)) << "row " << i << " of " << row.size() << ", temperature " << p.temperature
                                            << ", top_k " << p.top_k << ", top_p " << p.top_p << ", min_p " << p.min_p;
  }
}

TEST(Candidates, GiveTheIdsOfAFullSort) { expect_the_ids_of_full_sorts(300, 1, {1025, 1100, 2000}); }
TEST(SlowCandidates, GiveTheIdsOfAFullSort) {
  expect_the_ids_of_full_sorts(10000, 2, {3, 1000, 1025, 1088, 1500, 3000});
  expect_the_ids_of_full_sorts(30, 3, {152064});
}

// Compares the kept candidates, not only the one that a draw meets.
TEST(Candidates, KeepWhatAFullSortKeeps) {
  Rows random(4);
  int full_sorts = 0;
  for (int i = 0; i < 300; ++i) {
    const std::vector<float> row = random.row(1500);
    SamplingParams p = random.params(i);
    Candidates candidates = *Candidates::of(row);
    if (p.top_k > 0) candidates.take_best(static_cast<size_t>(p.top_k));
    if (p.top_p < 1) candidates.take_share(p.top_p);
    candidates.take_likely(p.min_p);
    full_sorts += candidates.full_sorts();
    const std::vector<Candidate> expected = filtered(row, p);
    ASSERT_EQ(candidates.left(), expected.size()) << "row " << i;
    ASSERT_TRUE(std::equal(expected.begin(), expected.end(), candidates.sorted().begin(),
                           [](const Candidate& a, const Candidate& b) { return a.id == b.id && a.logit == b.logit; }))
        << "row " << i;
  }
  EXPECT_LT(full_sorts, 60);
}

// ---- sums close to a bound -----------------------------------------------------------------------------------------

TEST(Candidates, SortWhereASumMeetsItsBound) {
  std::vector<float> row(2048, 1.5f);
  Candidates candidates = *Candidates::of(row);
  candidates.take_share(0.5);  // reached exactly by the 1024th
  EXPECT_EQ(candidates.left(), 1024u);
  EXPECT_EQ(candidates.full_sorts(), 1);
  Candidates others = *Candidates::of(row);
  others.take_share(1000.5 / 2048);  // between two sums
  EXPECT_EQ(others.left(), 1001u);
  EXPECT_EQ(others.full_sorts(), 0);
}

// Shares a few roundings beside each sum in turn, so that only the order of summation decides.
TEST(Candidates, SumsInOrderDecideWhereTheyAreClose) {
  Rows random(5);
  const std::vector<float> row = random.row(1100);
  const std::vector<Candidate> sorted = filtered(row, plain::off());
  const std::vector<double> w = weights_in_order(sorted, 1.0);
  double total = 0, sum = 0;
  for (double x : w) total += x;
  int full_sorts = 0;
  for (size_t i = 0; i < 200; ++i) {
    sum += w[i];
    for (int ulps : {-1, 0, 1}) {
      SamplingParams p = plain::off();
      p.top_p = sum / total * (1 + ulps * 0x1p-52);
      if (p.top_p >= 1) continue;
      Candidates candidates = *Candidates::of(row);
      candidates.take_share(p.top_p);
      full_sorts += candidates.full_sorts();
      ASSERT_EQ(candidates.left(), filtered(row, p).size()) << "sum " << i << ", " << ulps << " ulp";
    }
  }
  EXPECT_GT(full_sorts, 100);
}

TEST(Candidates, ADrawOnABoundSorts) {
  const std::vector<float> row(4096, -2.0f);
  Candidates candidates = *Candidates::of(row);
  EXPECT_EQ(candidates.draw(0.25), 1024) << "the first whose sum is above";
  EXPECT_EQ(candidates.full_sorts(), 1);
  Candidates others = *Candidates::of(row);
  EXPECT_EQ(others.draw(std::nextafter(0.25, 0.0)), 1023);
  EXPECT_EQ(others.full_sorts(), 1);
  EXPECT_EQ(Candidates::of(row)->draw(0.0), 0);
}

TEST(Candidates, WeightSumsAreWithinTheirBound) {
  Rows random(6);
  for (int i = 0; i < 50; ++i) {
    const std::vector<float> row = random.row(5000);
    const std::vector<Candidate> sorted = filtered(row, plain::off());
    const double temperature = random.pick({0.3, 1.0, 4.0});
    const std::vector<double> w = weights_in_order(sorted, temperature);
    const double share = plain::uniform(1, 0, i);
    const WeightSums sums(row, {std::numeric_limits<float>::lowest(), std::numeric_limits<int>::max()}, sorted[0].logit,
                          temperature);
    const auto found = sums.reaching(share);
    double total = 0, sum = 0;
    for (double x : w) total += x;
    size_t n = 0;
    while (n < w.size() && sum < share * total) sum += w[n++];
    if (found) {
      ASSERT_EQ(found->id, sorted[n - 1].id) << "row " << i;
    }
  }
}

// ---- single tokens ------------------------------------------------------------------------------------------------

// The same edits on a row, on a filtered row, and on a list.
TEST(Candidates, EditsMeanTheSameInEveryState) {
  std::vector<float> row(3000);
  for (size_t i = 0; i < row.size(); ++i) row[i] = static_cast<float>((i * 7919) % 3000) * 0.001f;
  const auto edit = [](Candidates& c) {
    c.remove(5);
    c.set(8, 10.5);
    c.set(9, *c.logit(9) - 1);
    EXPECT_FALSE(c.logit(5));
    EXPECT_FALSE(c.logit(-1));
    EXPECT_FALSE(c.logit(3000));
  };
  Candidates whole = *Candidates::of(row), cut = *Candidates::of(row), list = *Candidates::of(row);
  cut.take_share(0.9999);
  list.sorted();
  ASSERT_GT(cut.left(), 2900u);
  for (Candidates* c : {&whole, &cut, &list}) {
    const size_t before = c->left();
    edit(*c);
    EXPECT_EQ(c->left(), before - 1);
    EXPECT_EQ(c->best(), 8);
    EXPECT_EQ(c->sorted()[0].id, 8);
    EXPECT_TRUE(std::is_sorted(c->sorted().begin(), c->sorted().end(), better));
  }
  EXPECT_TRUE(std::equal(whole.sorted().begin(), whole.sorted().end(), list.sorted().begin(), list.sorted().end(),
                         [](const Candidate& a, const Candidate& b) { return a.id == b.id && a.logit == b.logit; }));
}

TEST(Candidates, MarksRemoveTheOthers) {
  std::vector<float> row(200);
  for (size_t i = 0; i < row.size(); ++i) row[i] = -0.25f * static_cast<float>(i);
  std::vector<uint64_t> mask(4);
  for (int id : {3, 64, 130, 199}) mask[static_cast<size_t>(id) / 64] |= uint64_t{1} << (id % 64);
  Candidates whole = *Candidates::of(row), list = *Candidates::of(row);
  list.take_best(150);
  whole.allow(mask);
  list.allow(mask);
  EXPECT_EQ(whole.left(), 4u);
  EXPECT_EQ(list.left(), 3u) << "199 was not among the best";
  EXPECT_EQ(whole.best(), 3);
  EXPECT_EQ(list.best(), 3);
  EXPECT_EQ(whole.draw(0.9999999), 64) << "whose weight is e^-15.25";
}

TEST(Candidates, TheBestOfARow) {
  const std::vector<float> row = {1, 5, 5, -2, 9, 5};
  const auto ids = [&](size_t k) {
    std::vector<int> out;
    for (const Candidate& c : best_of(row, k)) out.push_back(c.id);
    return out;
  };
  EXPECT_EQ(ids(3), (std::vector<int>{4, 1, 2}));
  EXPECT_EQ(ids(0), std::vector<int>{});
  EXPECT_EQ(ids(10), (std::vector<int>{4, 1, 2, 5, 0, 3}));
  std::vector<float> rising(10000);  // each is better than all before
  for (size_t i = 0; i < rising.size(); ++i) rising[i] = static_cast<float>(i / 2);
  const auto best = best_of(rising, 3);
  EXPECT_EQ(best[0].id, 9998);
  EXPECT_EQ(best[1].id, 9999);
  EXPECT_EQ(best[2].id, 9996);
}

}  // namespace
}  // namespace kvasir
