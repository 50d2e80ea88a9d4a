// Sums of weights over a long row without sorting it: weights are summed by narrow intervals of the logit, and only the
// interval in question is examined token by token. An answer equals that of summing in order; if rounding could change
// it, there is none.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "engine/sampling/candidates.h"

namespace kvasir {

/// Visits the part of a row that is not worse than `last`, in two stretches: calls fn(first id, logits, least logit),
/// where logits below the least do not count.
template <class F>
void for_each_stretch(std::span<const float> row, const Candidate& last, F&& fn) {
  const size_t split = last.id < 0 ? 0 : std::min(row.size(), static_cast<size_t>(last.id) + 1);
  fn(size_t{0}, row.first(split), last.logit);
  fn(split, row.subspan(split), std::nextafter(last.logit, std::numeric_limits<float>::infinity()));
}

/// Calls fn(i) for every i, ascending, with low <= part[i] <= high; fn may lower `high`. Skips blocks without any.
template <class F>
void for_each_between(std::span<const float> part, float low, const float& high, F&& fn) {
  constexpr size_t kBlock = 32;
  for (size_t begin = 0; begin < part.size(); begin += kBlock) {
    const size_t end = std::min(part.size(), begin + kBlock);
    const float top = high;
    int any = 0;
    if (end - begin == kBlock)
      for (size_t i = 0; i < kBlock; ++i)
        any |= static_cast<int>(part[begin + i] >= low) & static_cast<int>(part[begin + i] <= top);
    else
      any = 1;
    if (any == 0) continue;
    for (size_t i = begin; i < end; ++i)
      if (part[i] >= low && part[i] <= high) fn(i);
  }
}

/// Weights e^((logit - best) / temperature) of the logits that are not worse than `last`.
///
/// The error bound covers both sides, for n logits: each weight here is off by less than 5e-14 of itself (its exponent
/// by three roundings of at most 50 * 2^-53 each, the series by 8e-15, the table by 2^-51), those of exp_f64 by 2^-51,
/// and each of the sums, here and in order, by n 2^-53 of itself. Weights below e^-50 are left out: at most n of them.
class WeightSums {
 public:
  /// Requires: `best` is the largest logit, temperature > 0.
  WeightSums(std::span<const float> row, const Candidate& last, float best, double temperature);

  /// The first candidate, in order, at which the running sum reaches this share of the total; empty if a sum is too
  /// close to the share to decide without sorting.
  std::optional<Candidate> reaching(double share) const;

 private:
  int interval_of(float logit) const;
  double weight_of(float logit) const;
  void add(std::span<const float> row, float least);
  float least_logit_of(int interval) const;
  std::vector<Candidate> members(int interval) const;

  std::span<const float> row_;
  Candidate last_;
  double best_, scale_;
  std::vector<double> sums_;  // by interval
  double total_ = 0, bound_ = 0;
};

}  // namespace kvasir
