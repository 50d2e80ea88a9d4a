// Locally typical sampling: keeps the tokens whose information is nearest the entropy, until their probabilities sum to
// typical_p (Meister et al. 2022, arXiv:2202.00666). It needs all candidates in order, which is slow without top-k
// before it.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "engine/sampling/sampler.h"
#include "math/functions_f64.h"

namespace kvasir {
namespace {

constexpr std::array<SamplerParam, 1> kParams{
    {{.name = "typical_p",
      .summary = "keep the tokens of nearly average information up to this probability; 1: off",
      .whole = false,
      .preset = 1,
      .least = 0,
      .greatest = 1,
      .field = &SamplingParams::typical_p}}};

// | -log p - entropy | of every candidate.
std::vector<double> oddities(std::span<const double> weights, double total) {
  std::vector<double> information(weights.size());
  double entropy = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    information[i] = log_f64(total) - log_f64(weights[i]);
    if (weights[i] > 0) entropy += weights[i] / total * information[i];
  }
  for (double& x : information) x = std::fabs(x - entropy);
  return information;
}

Result<void> apply(Candidates& candidates, const SamplingParams& p, const SampleContext&) {
  if (p.typical_p >= 1) return {};
  const std::vector<double> w = candidates.weights();
  double total = 0;
  for (double x : w) total += x;
  const std::vector<double> oddity = oddities(w, total);
  std::vector<size_t> by_oddity(w.size());
  std::iota(by_oddity.begin(), by_oddity.end(), size_t{0});
  std::stable_sort(by_oddity.begin(), by_oddity.end(), [&](size_t a, size_t b) { return oddity[a] < oddity[b]; });
  double sum = 0;
  size_t kept = 0;
  while (kept < w.size() && (kept == 0 || sum < p.typical_p * total)) sum += w[by_oddity[kept++]];
  by_oddity.resize(kept);
  std::sort(by_oddity.begin(), by_oddity.end());
  std::vector<Candidate> some;
  for (size_t i : by_oddity) some.push_back(candidates.sorted()[i]);
  candidates.replace(std::move(some));
  return {};
}

}  // namespace

extern const Sampler sampler_typ_p{
    .info = {.name = "typ_p", .summary = "keeps tokens of nearly average information", .params = kParams},
    .place = 50,
    .apply = apply};

}  // namespace kvasir
