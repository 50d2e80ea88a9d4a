// Fitting the three factors.
#include "sched/pace.h"

#include <algorithm>

namespace kvasir::sched {

// The units give the three terms similar magnitude, so that the fit converges.
Pace::Terms Pace::terms_of(const PassShape& pass) {
  return {1.0, static_cast<double>(pass.tokens) / 64, static_cast<double>(pass.positions) / 65536};
}

void Pace::add(const PassShape& pass, double seconds) {
  constexpr double kDecay = 1.0 - 1.0 / 64;
  const Terms terms = terms_of(pass);
  for (size_t i = 0; i < kTerms; ++i) {
    for (size_t j = 0; j < kTerms; ++j) products_[i][j] = products_[i][j] * kDecay + terms[i] * terms[j];
    times_[i] = times_[i] * kDecay + terms[i] * seconds;
  }
  ++passes_;
  fit();
}

// Coordinate descent: sets each factor in turn to its best value given the others, at least 0. It starts from the last
// fit, so a few rounds are enough.
void Pace::fit() {
  constexpr int kRounds = 20;
  for (int round = 0; round < kRounds; ++round)
    for (size_t i = 0; i < kTerms; ++i) {
      if (products_[i][i] == 0) continue;
      double rest = times_[i];
      for (size_t j = 0; j < kTerms; ++j)
        if (j != i) rest -= products_[i][j] * factors_[j];
      factors_[i] = std::max(0.0, rest / products_[i][i]);
    }
}

double Pace::predict(const PassShape& pass) const {
  const Terms terms = terms_of(pass);
  double seconds = 0;
  for (size_t i = 0; i < kTerms; ++i) seconds += factors_[i] * terms[i];
  return seconds;
}

int Pace::prompt_tokens(double seconds, const PassShape& others, int64_t depth, int most) const {
  constexpr int kStep = 16, kUnknown = 64;
  if (!knows()) return std::min(kUnknown, most);
  const auto fits = [&](int tokens) {
    const int64_t n = tokens, positions = others.positions + n * depth + n * (n + 1) / 2;
    return predict({others.tokens + tokens, positions}) <= seconds;
  };
  int steps = 1, too_many = most / kStep + 1;
  while (too_many - steps > 1) {
    const int middle = steps + (too_many - steps) / 2;
    (fits(middle * kStep) ? steps : too_many) = middle;
  }
  return std::min(steps * kStep, most);
}

}  // namespace kvasir::sched
