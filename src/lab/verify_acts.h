// Operations on sequences besides plain generation, each a case of verify: shared passes, forks, truncations, reused
// prefixes, snapshots, lookup, scheduling.
#pragma once

#include <functional>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include <kvasir/generate.h>

namespace kvasir {

/// A text, and where the tokens that the reference generated begin.
struct KnownText {
  std::vector<int> tokens;  ///< the prompt and the generated tokens
  int prompt = 0;           ///< number of tokens of the prompt
};

/// Takes the logits [vocab] that choose the token at `position`, computed after tokens [0, position).
using Compare = std::function<void(size_t text, int position, std::span<const float> row)>;

/// Takes what was generated after a text's prompt, all of it or a prefix, with its receipt.
using CompareGeneration = std::function<Result<void>(size_t text, const Generation& generation)>;

/// Takes the results of a request run with others and run alone.
using CompareAlone = std::function<void(const Generation& generation, const Generation& alone)>;

struct ActRun {
  Engine& engine;
  SessionOptions session;
  std::span<const KnownText> texts;
  Compare compare;
  CompareGeneration compare_generation;
  CompareAlone compare_alone;
};

struct VerifyAct {
  std::string_view name;
  Result<void> (*run)(const ActRun& run);
};

std::span<const VerifyAct> verify_acts();

/// The act of verify_schedule.cc: requests that share a scheduler and too little memory.
Result<void> schedule(const ActRun& run);
/// A random number in [0, n), the same with every standard library.
int below(std::mt19937& random, int n);

}  // namespace kvasir
