// The order in which sequences that wait are admitted: pure functions. Whether there is room is the scheduler's.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace kvasir::sched {

/// One sequence that waits.
struct Waiting {
  std::string owner;
  double counter = 0;    ///< of the owner (Owners::counter)
  int priority = 0;      ///< larger goes first, within the owner
  uint64_t arrival = 0;  ///< smaller goes first
  int reusable = 0;      ///< tokens that are kept of its text
  int bypassed = 0;      ///< how often others of its owner went ahead for their reusable tokens
};

/// Indices, the first to be admitted first: owners by their counters; within an owner by priority and arrival, but that
/// of the first kBypassDepth one with more reusable tokens goes ahead, as long as the one that is next has been passed
/// by less than kMostBypasses times.
std::vector<size_t> admission_order(std::span<const Waiting> waiting);

inline constexpr size_t kBypassDepth = 8;
inline constexpr int kMostBypasses = 4;

/// Whether a text must wait for another that is being computed: it begins with at least kLeastShared more of the same
/// tokens than are kept already.
bool follows(std::span<const int> text, int reusable, std::span<const int> leader);
inline constexpr int kLeastShared = 64;

}  // namespace kvasir::sched
