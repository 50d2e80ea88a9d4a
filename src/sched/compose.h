// Whose tokens are in the next pass: a pure function. How many tokens a pass may have is pace.h's.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace kvasir::sched {

/// The tokens that one running sequence could compute in the next pass.
struct Need {
  int tokens = 0;    ///< known and not computed, 1 or more; a sequence that decodes has 1
  uint64_t age = 0;  ///< smaller is older
};

/// The tokens of each need in a pass, 0 for none. Every need of one token has it. `room` tokens more are for the
/// others: half of them for the oldest; the other half for those that it completes, the shortest first; the rest by
/// age.
std::vector<int> compose(std::span<const Need> needs, int room);

}  // namespace kvasir::sched
