// The interface of a sampler. Each file NAME.cc of this folder that defines sampler_NAME is one; the build lists them
// by file name.
#pragma once

#include <algorithm>

#include <kvasir/sampling.h>

#include "engine/sampling/candidates.h"

namespace kvasir {

struct Sampler {
  SamplerInfo info;
  int place;            ///< samplers run by ascending place unless the caller orders them
  bool edits = false;   ///< changes or removes single tokens, so it also runs at temperature 0
  bool always = false;  ///< runs first if SamplingParams::samplers does not name it
  /// Errors: a parameter that does not fit this row, no candidate left.
  Result<void> (*apply)(Candidates& candidates, const SamplingParams& params, const SampleContext& context);
};

/// The purpose of a random number. Draws of different purposes are independent.
enum class Draw : uint32_t { token = 0, xtc = 1 };
/// Uniform in [0, 1) with 53 bits; determined by the seed, the choice, the position and the purpose alone.
double uniform(const SamplingParams& params, const SampleContext& context, Draw draw);

/// The last n tokens; -1: all.
inline std::span<const int> last_tokens(std::span<const int> tokens, int n) {
  return n < 0 ? tokens : tokens.last(std::min(tokens.size(), static_cast<size_t>(n)));
}

}  // namespace kvasir
