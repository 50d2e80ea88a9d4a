// Min-p: drops tokens that are far less likely than the most likely one (Nguyen et al. 2024, arXiv:2407.01082).
#include <array>

#include "engine/sampling/sampler.h"

namespace kvasir {
namespace {

constexpr std::array<SamplerParam, 1> kParams{{{.name = "min_p",
                                                .summary = "drop tokens below this share of the most likely one",
                                                .whole = false,
                                                .preset = 0.05,
                                                .least = 0,
                                                .greatest = 1,
                                                .field = &SamplingParams::min_p}}};

Result<void> apply(Candidates& candidates, const SamplingParams& p, const SampleContext&) {
  candidates.take_likely(p.min_p);
  return {};
}

}  // namespace

extern const Sampler sampler_min_p{
    .info = {.name = "min_p", .summary = "drops tokens far less likely than the most likely one", .params = kParams},
    .place = 70,
    .apply = apply};

}  // namespace kvasir
