// Top-p, or nucleus sampling: keeps the fewest most likely tokens whose probabilities sum to top_p (Holtzman et al.
// 2020, arXiv:1904.09751).
#include <array>

#include "engine/sampling/sampler.h"

namespace kvasir {
namespace {

constexpr std::array<SamplerParam, 1> kParams{{{.name = "top_p",
                                                .summary = "keep the most likely tokens up to this probability",
                                                .whole = false,
                                                .preset = 0.95,
                                                .least = 0,
                                                .greatest = 1,
                                                .field = &SamplingParams::top_p}}};

Result<void> apply(Candidates& candidates, const SamplingParams& p, const SampleContext&) {
  if (p.top_p < 1) candidates.take_share(p.top_p);
  return {};
}

}  // namespace

extern const Sampler sampler_top_p{
    .info = {.name = "top_p", .summary = "keeps the fewest tokens that have a probability together", .params = kParams},
    .place = 60,
    .apply = apply};

}  // namespace kvasir
