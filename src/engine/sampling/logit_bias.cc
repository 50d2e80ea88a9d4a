// Logit bias: adds a given number to the logit of each chosen id, as in OpenAI's API.
#include <fmt/format.h>

#include "engine/sampling/sampler.h"

namespace kvasir {
namespace {

constexpr float kBan = -100;

Result<void> apply(Candidates& candidates, const SamplingParams& p, const SampleContext&) {
  for (const auto& [id, bias] : p.logit_bias) {
    if (id < 0 || static_cast<size_t>(id) >= candidates.vocabulary())
      return fail(Error::bad_argument, fmt::format("token {} is not in the vocabulary", id),
                  "SamplingParams::logit_bias", fmt::format("0..{}", candidates.vocabulary() - 1));
    const auto logit = candidates.logit(id);
    if (!logit) continue;
    if (bias <= kBan)
      candidates.remove(id);
    else
      candidates.set(id, *logit + bias);
  }
  if (candidates.left() > 0) return {};
  return fail(Error::bad_argument, "all tokens are banned", "SamplingParams::logit_bias",
              "a bias above -100 for one of them");
}

}  // namespace

extern const Sampler sampler_logit_bias{
    .info = {.name = "logit_bias", .summary = "adds a bias to the logits of chosen tokens, or bans them", .params = {}},
    .place = 0,
    .edits = true,
    .always = true,
    .apply = apply};

}  // namespace kvasir
