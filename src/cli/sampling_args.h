// The flags of sampling. Flags of sampler parameters are made from the library's registry.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/cli.h"

namespace kvasir::cli {

/// --greedy, --seed, --stop, --logit-bias, --samplers, and a flag for every parameter of every sampler.
struct SamplingArgs {
  struct Number {
    const SamplerParam* param;
    std::optional<int> whole = {};
    std::optional<double> real = {};
  };
  bool greedy = false;
  std::deque<Number> numbers;  // a deque: bound flags point into it
  std::optional<uint64_t> seed;
  std::vector<std::string> stop, logit_bias, samplers;

  void add(Flags& flags);
  /// The given values; otherwise the model's defaults and a random seed. Errors: --repeat-last-n without a repeat
  /// penalty, a malformed --logit-bias.
  Result<SamplingParams> params(const Model& model) const;

 private:
  bool given(std::string_view parameter) const;
};

}  // namespace kvasir::cli
