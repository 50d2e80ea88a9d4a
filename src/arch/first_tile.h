// The first tile of a sequence whose sinks move (CacheShape::sinks), as one query sees it: the sinks' keys rotated to
// the places right before its window, and the rows of the window that are in the same tile.
#pragma once

#include <span>
#include <vector>

#include "arch/pass.h"
#include "math/tile.h"

namespace kvasir {

class FirstTile {
 public:
  /// room: 2 * 64 * head_dim floats.
  FirstTile(const Pass& pass, int layer, int row, float* room);

  /// Of one KV head: fills the rows that the query sees and returns the tiles with this one in the place of those at
  /// position 0. k() and v() are its rows.
  std::vector<Tile> assemble(std::span<const Tile> tiles, int kv_head);
  const float* k() const { return k_; }
  const float* v() const { return v_; }

 private:
  void read_row(const Tile& tile, int i, int kv_head);

  const Pass& pass_;
  const CacheShape& shape_;
  int layer_, row_;
  float *k_, *v_;
};

}  // namespace kvasir
