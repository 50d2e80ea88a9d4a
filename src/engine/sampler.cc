// Choosing a token. Exact and the same everywhere: candidates ordered by (logit descending, id ascending), sums in
// double in that order, a counter-based generator keyed by (seed, choice, position).
#include <algorithm>
#include <cmath>
#include <cstdint>

#include <fmt/format.h>

#include <kvasir/sampling.h>

#include "base/float_env.h"
#include "base/philox.h"
#include "math/functions_f64.h"

namespace kvasir {
namespace {

struct Candidate {
  float logit;
  int id;
};

bool better(const Candidate& a, const Candidate& b) { return a.logit != b.logit ? a.logit > b.logit : a.id < b.id; }

// Uniform in [0, 1) with 53 bits.
double uniform(uint64_t seed, int choice, int position) {
  const auto bits = philox4x32({static_cast<uint32_t>(position), static_cast<uint32_t>(choice), 0, 0}, seed);
  const uint64_t mantissa = (uint64_t{bits[0]} << 32 | bits[1]) >> 11;
  return static_cast<double>(mantissa) * 0x1p-53;
}

void penalise(std::vector<Candidate>& all, const SamplingParams& p, std::span<const int> recent) {
  if (p.repeat_penalty == 1.0) return;
  const size_t n = p.repeat_last_n < 0 ? recent.size() : std::min(recent.size(), static_cast<size_t>(p.repeat_last_n));
  std::vector<int> seen(recent.end() - static_cast<std::ptrdiff_t>(n), recent.end());
  std::sort(seen.begin(), seen.end());
  seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
  const float penalty = static_cast<float>(p.repeat_penalty);
  for (int id : seen) {
    if (id < 0 || static_cast<size_t>(id) >= all.size()) continue;
    float& logit = all[static_cast<size_t>(id)].logit;
    logit = logit > 0 ? logit / penalty : logit * penalty;
  }
}

// exp(logit - largest) for each, unnormalised.
std::vector<double> weights_of(std::span<const Candidate> sorted, double temperature) {
  std::vector<double> w;
  for (const Candidate& c : sorted)
    w.push_back(exp_f64((static_cast<double>(c.logit) - static_cast<double>(sorted[0].logit)) / temperature));
  return w;
}

// How many of the sorted candidates top-p and min-p leave; at least one.
size_t nucleus(std::span<const Candidate> sorted, const SamplingParams& p) {
  const std::vector<double> w = weights_of(sorted, 1.0);
  double total = 0;
  for (double x : w) total += x;
  size_t keep = w.size();
  if (p.top_p < 1.0) {
    double sum = 0;
    for (keep = 0; keep < w.size() && (keep == 0 || sum < p.top_p * total); ++keep) sum += w[keep];
  }
  while (keep > 1 && w[keep - 1] < p.min_p * w[0]) --keep;
  return keep;
}

int draw(std::span<const Candidate> sorted, double temperature, double u) {
  const std::vector<double> w = weights_of(sorted, temperature);
  double total = 0;
  for (double x : w) total += x;
  double sum = 0;
  for (size_t i = 0; i < w.size(); ++i) {
    sum += w[i];
    if (u * total < sum) return sorted[i].id;
  }
  return sorted.back().id;
}

}  // namespace

Result<void> check_sampling(const SamplingParams& p) {
  const auto check = [](const char* flag, double value, double min, double max) -> Result<void> {
    if (value >= min && value <= max) return {};
    return fail(fmt::format("{} is out of range", value), flag, fmt::format("{}..{}", min, max));
  };
  KVASIR_CHECK(check("--temp", p.temperature, 0.0, 100.0));
  KVASIR_CHECK(check("--top-k", p.top_k, 0, 1 << 24));
  KVASIR_CHECK(check("--top-p", p.top_p, 0.0, 1.0));
  KVASIR_CHECK(check("--min-p", p.min_p, 0.0, 1.0));
  KVASIR_CHECK(check("--repeat-penalty", p.repeat_penalty, 0.01, 100.0));
  return check("--repeat-last-n", p.repeat_last_n, -1, 1 << 24);
}

Constraint::~Constraint() = default;
bool Constraint::done() const { return false; }

Result<int> sample(std::span<const float> logits, const SamplingParams& p, const SampleContext& c) {
  const FloatEnv env;
  if (logits.empty()) return fail("no logits to choose from", "sampler");
  std::vector<Candidate> all(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    if (!std::isfinite(logits[i])) return fail(fmt::format("the logit of token {} is not finite", i), "sampler");
    all[i] = {logits[i], static_cast<int>(i)};
  }
  penalise(all, p, c.recent);
  if (p.temperature == 0) return std::min_element(all.begin(), all.end(), better)->id;
  const size_t k = p.top_k > 0 ? std::min(all.size(), static_cast<size_t>(p.top_k)) : all.size();
  const auto end = all.begin() + static_cast<std::ptrdiff_t>(k);
  if (end == all.end())
    std::sort(all.begin(), end, better);  // several times faster than partial_sort of everything
  else
    std::partial_sort(all.begin(), end, all.end(), better);
  const std::span<const Candidate> sorted(all.data(), k);
  return draw(sorted.first(nucleus(sorted, p)), p.temperature, uniform(p.seed, c.choice, c.position));
}

}  // namespace kvasir
