// Copies the first tile of a sequence with moving sinks (CacheShape::sinks), as one query sees it: the sinks' keys,
// rotated to the positions just before the query's window, and the rows of the window that lie in the same tile.
#pragma once

#include <span>
#include <vector>

#include "arch/forward_pass.h"
#include "math/tile.h"

namespace kvasir {

class FirstTile {
 public:
  /// `room` has 2 * 64 * head_dim floats; k() and v() are its halves.
  FirstTile(const Pass& pass, int layer, int row, float* room);

  /// Fills the rows that the query sees of one KV head. Returns `tiles` with this tile in place of those at position 0.
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
