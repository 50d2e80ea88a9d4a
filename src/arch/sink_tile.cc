// Decodes the rows of the first tile and rotates the sinks' keys.
#include "arch/sink_tile.h"

#include "math/hadamard.h"

namespace kvasir {

FirstTile::FirstTile(const Pass& pass, int layer, int row, float* room)
    : pass_(pass),
      shape_(pass.item_of(row).cache->shape()),
      layer_(layer),
      row_(row),
      k_(room),
      v_(room + int64_t{kTilePositions} * shape_.head_dim) {}

std::vector<Tile> FirstTile::assemble(std::span<const Tile> tiles, int kv_head) {
  const int pos = pass_.position(row_);
  std::vector<Tile> seen(1);
  for (const Tile& tile : tiles) {
    if (tile.first != 0) {
      seen.push_back(tile);
      continue;
    }
    const uint64_t live = tile.live & seen_rows(0, pos, pos, shape_.window(layer_), shape_.sinks);
    for (uint64_t bits = live; bits != 0; bits &= bits - 1) read_row(tile, __builtin_ctzll(bits), kv_head);
    seen[0].live |= live;
  }
  return seen;
}

void FirstTile::read_row(const Tile& tile, int i, int kv_head) {
  const int d = shape_.head_dim;
  const auto head = static_cast<size_t>(kv_head), at = static_cast<size_t>(i);
  float* const k = k_ + int64_t{i} * d;
  const Codec &k_codec = *shape_.k->codec, &v_codec = *shape_.v->codec;
  k_codec.decode(tile.k + at * tile.k_stride + head * k_codec.row_bytes(d), k, d);
  v_codec.decode(tile.v + at * tile.v_stride + head * v_codec.row_bytes(d), v_ + int64_t{i} * d, d);
  if (i >= shape_.sinks || pass_.config().rope_kind(layer_) < 0) return;
  if (shape_.k->rotated) rotate_heads(k, 1, d);
  pass_.rotate_sink(layer_, row_, i, k, 1);
  if (shape_.k->rotated) rotate_heads(k, 1, d);
}

}  // namespace kvasir
