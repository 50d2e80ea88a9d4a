// Which sequences of a pass hold the same memory, so that it is attended once for all of them. What is computed, and
// in which order, does not depend on it.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "math/tile.h"

namespace kvasir {

/// Sequences whose first `tiles` tiles are the same rows of the same memory.
struct SharedTiles {
  std::vector<size_t> items;  // at least two, ascending
  int tiles = 0;
};

/// Each sequence is in one group at most. A group is found for its first sequence: of the others those that share at
/// least half of what any of them shares with it. Where tiles[i] is empty, i shares nothing. Caches of different shapes
/// never have memory in common (Layout::adopt).
std::vector<SharedTiles> find_shared_tiles(std::span<const std::span<const Tile>> tiles);

}  // namespace kvasir
