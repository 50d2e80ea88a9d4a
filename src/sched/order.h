// The order in which waiting sequences are admitted: pure functions. The scheduler decides whether there is room.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace kvasir::sched {

/// One waiting sequence.
struct Waiting {
  std::string_view owner;
  double counter = 0;    ///< the owner's (Owners::counter)
  int priority = 0;      ///< larger goes first, within the owner
  uint64_t arrival = 0;  ///< smaller goes first
  int bypassed = 0;      ///< how often others of its owner were admitted before it because they could reuse more tokens
};

/// Returns indices into `waiting`: by owner counter, lowest first; within an owner by priority, then by arrival.
std::vector<size_t> admission_order(std::span<const Waiting> waiting);

/// Picks which of an owner's next sequences is admitted first: the one with the most reusable tokens, except that the
/// next in order goes first once it has been bypassed kMostBypasses times. `reusable`: reusable tokens of the first 1
/// to kBypassDepth sequences in order. Returns an index into it.
size_t first_of_owner(std::span<const int> reusable, int bypassed);

inline constexpr size_t kBypassDepth = 8;
inline constexpr int kMostBypasses = 4;

/// Whether `text` should wait for `leader`, a prompt that is being computed: their common prefix exceeds the `reusable`
/// tokens of `text` by at least kLeastShared.
bool follows(std::span<const int> text, int reusable, std::span<const int> leader);
inline constexpr int kLeastShared = 64;

}  // namespace kvasir::sched
