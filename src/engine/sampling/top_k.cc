// Top-k: keeps the k most likely tokens (Fan et al. 2018, arXiv:1805.04833).
#include <array>

#include "engine/sampling/sampler.h"

namespace kvasir {
namespace {

constexpr std::array<SamplerParam, 1> kParams{{{.name = "top_k",
                                                .summary = "keep the k most likely tokens; 0: all",
                                                .whole = true,
                                                .preset = 40,
                                                .least = 0,
                                                .greatest = 1 << 24,
                                                .field = &SamplingParams::top_k}}};

Result<void> apply(Candidates& candidates, const SamplingParams& p, const SampleContext&) {
  if (p.top_k > 0) candidates.take_best(static_cast<size_t>(p.top_k));
  return {};
}

}  // namespace

extern const Sampler sampler_top_k{
    .info = {.name = "top_k", .summary = "keeps the k most likely tokens", .params = kParams},
    .place = 40,
    .apply = apply};

}  // namespace kvasir
