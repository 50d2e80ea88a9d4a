// What sequences may go through besides being generated, each a case of verify: shared passes, forks, truncations,
// reused beginnings, files, guesses.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include <kvasir/engine.h>

namespace kvasir {

/// A text and where in it the reference's tokens begin.
struct KnownText {
  std::vector<int> tokens;  ///< the prompt and what was generated
  int prompt = 0;           ///< tokens of the prompt
};

/// Takes the logits that an act computed, at the position that they choose: tokens [0, position) came before.
using Compare = std::function<void(size_t text, int position, std::span<const float> row)>;

struct ActRun {
  Engine& engine;
  SessionOptions session;
  std::span<const KnownText> texts;
  Compare compare;
};

struct VerifyAct {
  std::string_view name;
  Result<void> (*run)(const ActRun& run);
};

std::span<const VerifyAct> verify_acts();

}  // namespace kvasir
