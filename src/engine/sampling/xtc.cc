// XTC ("exclude top choices"): at random, removes all tokens of at least the threshold's probability, except the least
// likely of them. By p-e-w, github.com/oobabooga/text-generation-webui pull request 6335; llama.cpp pull request 9742.
// It uses random numbers of its own, so that the draw of the token uses the same number as without XTC.
#include <array>

#include "engine/sampling/sampler.h"

namespace kvasir {
namespace {

constexpr std::array<SamplerParam, 2> kParams{{
    {.name = "xtc_probability",
     .summary = "how often XTC removes the most likely tokens; 0: never",
     .whole = false,
     .preset = 0,
     .least = 0,
     .greatest = 1,
     .field = &SamplingParams::xtc_probability},
    {.name = "xtc_threshold",
     .summary = "XTC removes tokens of at least this probability, except the least likely of them; above 0.5: none",
     .whole = false,
     .preset = 0.1,
     .least = 0,
     .greatest = 1,
     .field = &SamplingParams::xtc_threshold,
     .needs = "xtc_probability"},
}};

Result<void> apply(Candidates& candidates, const SamplingParams& p, const SampleContext& context) {
  if (p.xtc_probability == 0 || p.xtc_threshold > 0.5) return {};
  if (!(uniform(p, context, Draw::xtc) < p.xtc_probability)) return {};
  const std::vector<double> w = candidates.weights();
  double total = 0;
  for (double x : w) total += x;
  size_t likely = 0;
  while (likely < w.size() && w[likely] >= p.xtc_threshold * total) ++likely;
  if (likely < 2) return {};
  const auto kept = candidates.sorted().subspan(likely - 1);
  candidates.replace({kept.begin(), kept.end()});
  return {};
}

}  // namespace

extern const Sampler sampler_xtc{
    .info = {.name = "xtc", .summary = "now and then removes the most likely tokens", .params = kParams},
    .place = 80,
    .apply = apply};

}  // namespace kvasir
