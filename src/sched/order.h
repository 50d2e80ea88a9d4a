// The order in which sequences that wait are admitted: pure functions. Whether there is room is the scheduler's.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace kvasir::sched {

/// One sequence that waits.
struct Waiting {
  std::string_view owner;
  double counter = 0;    ///< of the owner (Owners::counter)
  int priority = 0;      ///< larger goes first, within the owner
  uint64_t arrival = 0;  ///< smaller goes first
  int bypassed = 0;      ///< how often others of its owner went ahead for their reusable tokens
};

/// Indices: owners by their counters, each one's sequences together, by priority and arrival.
std::vector<size_t> admission_order(std::span<const Waiting> waiting);

/// Which of an owner's next sequences is admitted first: the one with the most reusable tokens, but the next in order
/// once it has been passed by kMostBypasses times. `reusable`: of the first kBypassDepth in order, at least one.
size_t first_of_owner(std::span<const int> reusable, int bypassed);

inline constexpr size_t kBypassDepth = 8;
inline constexpr int kMostBypasses = 4;

/// Whether a text must wait for another that is being computed: it begins with at least kLeastShared more of the same
/// tokens than are kept already.
bool follows(std::span<const int> text, int reusable, std::span<const int> leader);
inline constexpr int kLeastShared = 64;

}  // namespace kvasir::sched
