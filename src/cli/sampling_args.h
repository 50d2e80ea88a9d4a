// How tokens are chosen, on the command line.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/cli.h"

namespace kvasir::cli {

/// --greedy, --temp, --top-k, --top-p, --min-p, --repeat-penalty, --repeat-last-n, --seed, --stop.
struct SamplingArgs {
  bool greedy = false;
  std::optional<double> temperature, top_p, min_p, repeat_penalty;
  std::optional<int> top_k, repeat_last_n;
  std::optional<uint64_t> seed;
  std::vector<std::string> stop;

  void add(Flags& flags);
  /// The model's own defaults where nothing was given; a random seed. Errors: --repeat-last-n of no penalty.
  Result<SamplingParams> params(const Model& model) const;
};

}  // namespace kvasir::cli
