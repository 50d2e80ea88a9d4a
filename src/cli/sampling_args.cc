// Options to parameters.
#include "cli/sampling_args.h"

#include <random>

namespace kvasir::cli {

void SamplingArgs::add(Flags& flags) {
  flags.bind(flag::kGreedy, &greedy);
  flags.bind(flag::kTemperature, &temperature);
  flags.bind(flag::kTopK, &top_k);
  flags.bind(flag::kTopP, &top_p);
  flags.bind(flag::kMinP, &min_p);
  flags.bind(flag::kRepeatPenalty, &repeat_penalty);
  flags.bind(flag::kRepeatLastN, &repeat_last_n);
  flags.bind(flag::kSeed, &seed);
  flags.bind(flag::kStop, &stop);
}

Result<SamplingParams> SamplingArgs::params(const Model& model) const {
  SamplingParams p = model.sampling_defaults();
  if (temperature) p.temperature = *temperature;
  if (top_k) p.top_k = *top_k;
  if (top_p) p.top_p = *top_p;
  if (min_p) p.min_p = *min_p;
  if (repeat_penalty) {
    p.repeat_penalty = *repeat_penalty;
    p.repeat_last_n = SamplingParams().repeat_last_n;
  }
  if (repeat_last_n) p.repeat_last_n = *repeat_last_n;
  if (repeat_last_n && !repeat_penalty && p.repeat_penalty == 1.0)
    return fail(Error::bad_argument, "it changes nothing, for this model has no penalty of its own", "--repeat-last-n",
                "--repeat-penalty too");
  if (greedy) p.temperature = 0;
  p.seed = seed ? *seed : (uint64_t{std::random_device{}()} << 32 | std::random_device{}());
  return p;
}

}  // namespace kvasir::cli
