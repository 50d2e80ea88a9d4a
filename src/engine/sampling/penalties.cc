// Penalties for tokens that occurred before. The repetition penalty divides positive logits and multiplies negative
// ones, once for each distinct recent token (Keskar et al. 2019, arXiv:1909.05858). Presence and frequency penalties
// are OpenAI's: subtracted, and counted over generated tokens only.
#include <algorithm>
#include <array>

#include "engine/sampling/sampler.h"

namespace kvasir {
namespace {

constexpr std::array<SamplerParam, 4> kParams{{
    {.name = "repeat_penalty",
     .summary = "divide the logits of recent tokens; 1: off; the model's own default",
     .whole = false,
     .preset = 1,
     .least = 0.01,
     .greatest = 100,
     .field = &SamplingParams::repeat_penalty},
    {.name = "repeat_last_n",
     .summary = "number of recent tokens to penalise; -1: all. 64 with SamplingParams::repeat_penalty, all with the "
                "model's own penalty",
     .whole = true,
     .preset = 64,
     .least = -1,
     .greatest = 1 << 24,
     .field = &SamplingParams::repeat_last_n},
    {.name = "presence_penalty",
     .summary = "subtract this from the logits of tokens that were generated; 0: off",
     .whole = false,
     .preset = 0,
     .least = -100,
     .greatest = 100,
     .field = &SamplingParams::presence_penalty},
    {.name = "frequency_penalty",
     .summary = "subtract this from a token's logit for each time that it was generated; 0: off",
     .whole = false,
     .preset = 0,
     .least = -100,
     .greatest = 100,
     .field = &SamplingParams::frequency_penalty},
}};

std::vector<int> in_order(std::span<const int> tokens) {
  std::vector<int> ids(tokens.begin(), tokens.end());
  std::sort(ids.begin(), ids.end());
  return ids;
}

void penalise_repeats(Candidates& candidates, const SamplingParams& p, std::span<const int> recent) {
  if (p.repeat_penalty == 1.0) return;
  std::vector<int> seen = in_order(last_tokens(recent, p.repeat_last_n));
  seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
  const float penalty = static_cast<float>(p.repeat_penalty);
  for (int id : seen)
    if (const auto logit = candidates.logit(id)) candidates.set(id, *logit > 0 ? *logit / penalty : *logit * penalty);
}

void penalise_generated(Candidates& candidates, const SamplingParams& p, std::span<const int> generated) {
  if (p.presence_penalty == 0 && p.frequency_penalty == 0) return;
  const std::vector<int> ids = in_order(generated);
  for (auto it = ids.begin(); it != ids.end();) {
    const auto next = std::upper_bound(it, ids.end(), *it);
    const double penalty = p.presence_penalty + p.frequency_penalty * static_cast<double>(next - it);
    if (const auto logit = candidates.logit(*it)) candidates.set(*it, *logit - penalty);
    it = next;
  }
}

Result<void> apply(Candidates& candidates, const SamplingParams& p, const SampleContext& context) {
  penalise_repeats(candidates, p, context.recent);
  penalise_generated(candidates, p, context.recent.subspan(std::min(context.prompt_tokens, context.recent.size())));
  return {};
}

}  // namespace

extern const Sampler sampler_penalties{
    .info = {.name = "penalties", .summary = "makes tokens that occurred before less likely", .params = kParams},
    .place = 20,
    .edits = true,
    .apply = apply};

}  // namespace kvasir
