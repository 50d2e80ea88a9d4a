// The interface of a sampler. Each file NAME.cc of this folder that defines sampler_NAME is one; the chain finds them
// by a list that the build makes from the file names.
#pragma once

#include <algorithm>

#include <kvasir/sampling.h>

#include "engine/sampling/candidates.h"

namespace kvasir {

struct Sampler {
  SamplerInfo info;
  int place;            ///< samplers run in ascending order of it where nothing else is asked for
  bool edits = false;   ///< changes or removes single tokens, so that it runs at temperature 0 too
  bool always = false;  ///< runs first where SamplingParams::samplers does not name it
  /// Errors: a parameter that does not fit this row, nothing left.
  Result<void> (*apply)(Candidates& candidates, const SamplingParams& params, const SampleContext& context);
};

/// The purpose of a random number: each has numbers of its own.
enum class Draw : uint32_t { token = 0, xtc = 1 };
/// Uniform in [0, 1) with 53 bits, by the seed, the choice, the position and the purpose alone.
double uniform(const SamplingParams& params, const SampleContext& context, Draw draw);

/// The last n of the tokens; -1: all.
inline std::span<const int> last_tokens(std::span<const int> tokens, int n) {
  return n < 0 ? tokens : tokens.last(std::min(tokens.size(), static_cast<size_t>(n)));
}

}  // namespace kvasir
