// Options to parameters.
#include "cli/sampling_args.h"

#include <random>

namespace kvasir::cli {

void SamplingArgs::add(CLI::App& app) {
  app.add_flag("--greedy", greedy, "always the most likely token; the same as --temp 0");
  app.add_option("--temp", temperature, "temperature; the model's own default, else 0.8");
  app.add_option("--top-k", top_k, "keep the k most likely tokens; 0: all");
  app.add_option("--top-p", top_p, "keep the most likely tokens up to this probability");
  app.add_option("--min-p", min_p, "drop tokens below this share of the most likely one");
  app.add_option("--repeat-penalty", repeat_penalty, "divide the logits of recent tokens; 1: off");
  app.add_option("--repeat-last-n", repeat_last_n, "how many recent tokens that is");
  app.add_option("--seed", seed, "of the random numbers; without it a new one each time, shown by --stats")
      ->check(not_negative);
  app.add_option("--stop", stop, "end before this text; may be given more than once")->allow_extra_args(false);
}

SamplingParams SamplingArgs::params(const Model& model) const {
  SamplingParams p = model.sampling_defaults();
  if (temperature) p.temperature = *temperature;
  if (top_k) p.top_k = *top_k;
  if (top_p) p.top_p = *top_p;
  if (min_p) p.min_p = *min_p;
  if (repeat_penalty) p.repeat_penalty = *repeat_penalty;
  if (repeat_last_n) p.repeat_last_n = *repeat_last_n;
  if (greedy) p.temperature = 0;
  p.seed = seed ? *seed : (uint64_t{std::random_device{}()} << 32 | std::random_device{}());
  return p;
}

}  // namespace kvasir::cli
