// Temperature: divides the differences between logits. Removes nothing; samplers that run after it see its weights.
#include <array>

#include "engine/sampling/sampler.h"

namespace kvasir {
namespace {

constexpr std::array<SamplerParam, 1> kParams{{{.name = "temperature",
                                                .summary = "temperature; the model's own default, else 0.8",
                                                .whole = false,
                                                .preset = 0.8,
                                                .least = 0,
                                                .greatest = 100,
                                                .field = &SamplingParams::temperature}}};

Result<void> apply(Candidates& candidates, const SamplingParams& p, const SampleContext&) {
  candidates.set_temperature(p.temperature);
  return {};
}

}  // namespace

extern const Sampler sampler_temperature{
    .info = {.name = "temperature", .summary = "flattens or sharpens the distribution", .params = kParams},
    .place = 90,
    .apply = apply};

}  // namespace kvasir
