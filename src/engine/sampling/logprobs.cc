// Log probabilities of the raw logits, before any sampler.
#include <cmath>

#include <kvasir/sampling.h>

#include "base/float_env.h"
#include "engine/sampling/candidates.h"
#include "math/functions_f64.h"

namespace kvasir {

TokenLogprob logprobs_of(std::span<const float> logits, int id, size_t top_n) {
  const FloatEnv env;
  const double best = best_of(logits, 1).front().logit;
  double total = 0;
  for (float x : logits) total += exp_f64(static_cast<double>(x) - best);
  const double log_total = log_f64(total);
  const auto logprob = [&](float x) { return static_cast<double>(x) - best - log_total; };
  TokenLogprob out{.id = id, .logprob = logprob(logits[static_cast<size_t>(id)])};
  for (const Candidate& c : best_of(logits, top_n)) out.top.emplace_back(c.id, logprob(c.logit));
  return out;
}

}  // namespace kvasir
