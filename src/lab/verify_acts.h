// What sequences may go through besides being generated, each a case of verify: shared passes, forks, truncations,
// reused beginnings, files, guesses.
#pragma once

#include <functional>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include <kvasir/generate.h>

namespace kvasir {

/// A text and where in it the reference's tokens begin.
struct KnownText {
  std::vector<int> tokens;  ///< the prompt and what was generated
  int prompt = 0;           ///< tokens of the prompt
};

/// Takes the logits that an act computed, at the position that they choose: tokens [0, position) came before.
using Compare = std::function<void(size_t text, int position, std::span<const float> row)>;

/// Takes what was generated after a text's prompt, all of it or a beginning, with its receipt.
using CompareGeneration = std::function<Result<void>(size_t text, const Generation& generation)>;

/// Takes what a request gave in company and what it gives alone.
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
/// In [0, n), the same on every standard library.
int below(std::mt19937& random, int n);

}  // namespace kvasir
