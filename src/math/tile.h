// The unit of attention: 64 absolute positions. Layouts hand out tiles and kernels read them; a tile has no record of
// who owns its rows.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kvasir {

inline constexpr int kTilePositions = 64;

/// Positions first..first+63, `first` a multiple of 64. Row i of K begins at k + i * k_stride and contains every KV
/// head. Only rows whose bit is set in `live` may be read: the memory of others may not exist.
struct Tile {
  int first = 0;
  uint64_t live = 0;
  const std::byte* k = nullptr;
  const std::byte* v = nullptr;
  size_t k_stride = 0, v_stride = 0;  // bytes between positions
};

/// Bits of the positions first..first+63 that are below `end`.
constexpr uint64_t live_below(int first, int end) {
  const int n = end - first;
  return n >= kTilePositions ? ~uint64_t{0} : n <= 0 ? 0 : (uint64_t{1} << n) - 1;
}

/// Rows of the tile at `first` that a query at any position in from..to may attend to: the last `window` positions up
/// to its own, and the first `sinks` of the sequence. A window of 0 means all positions.
constexpr uint64_t seen_rows(int first, int from, int to, int window, int sinks) {
  const uint64_t past = live_below(first, to + 1);
  return window == 0 ? past : past & (~live_below(first, from + 1 - window) | live_below(first, sinks));
}

}  // namespace kvasir
