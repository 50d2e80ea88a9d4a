// Finds sequences of a pass whose caches share memory, so that attention reads that memory once for all of them.
// Neither the result nor the order of its sums depends on this.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "math/tile.h"

namespace kvasir {

/// Sequences whose first `tiles` tiles are the same rows in the same memory.
struct SharedTiles {
  std::vector<size_t> items;  // at least two, ascending
  int tiles = 0;
};

/// Groups sequences; each is in at most one group. A group starts at its first sequence and takes in those that share
/// at least half as many tiles with it as the one that shares most. A sequence with empty tiles[i] is in no group.
/// Caches of different shapes never share memory (Layout::adopt).
std::vector<SharedTiles> find_shared_tiles(std::span<const std::span<const Tile>> tiles);

}  // namespace kvasir
