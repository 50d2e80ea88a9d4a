// Which sequences have tokens in the next pass, and how many: a pure function. pace.h decides how many a pass may have.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace kvasir::sched {

/// The tokens that one running sequence could compute in the next pass.
struct Need {
  int tokens = 0;    ///< not computed yet, at least 1; a decoding sequence has 1
  uint64_t age = 0;  ///< smaller is older
};

/// Returns the number of tokens of each need in the next pass, 0 for none. Every need of one token gets it. `room`
/// further tokens go to the longer needs: half to the oldest; the other half to needs that it completes, shortest
/// first; what remains by age.
std::vector<int> compose(std::span<const Need> needs, int room);

}  // namespace kvasir::sched
