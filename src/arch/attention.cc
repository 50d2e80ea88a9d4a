// The attention block: rows go to the caches, then the queries are cut into units for the threads. Where a unit ends
// can change no bit: tiles are computed each alone and merged in order (docs/numerics.md).
#include <algorithm>
#include <atomic>
#include <deque>
#include <vector>

#include "arch/blocks.h"

namespace kvasir {
namespace {

constexpr int kTokensPerUnit = 16;  // enough to reuse a tile's rows, small enough to share evenly
static_assert(kTokensPerUnit <= kMaxAttendTokens);
constexpr int kSplitTiles = 4;      // a history of so many tiles is worth cutting
constexpr int kUnitsPerThread = 4;  // enough to share evenly

int tiles_of(const BatchItem& item) {
  return (item.first + static_cast<int>(item.tokens.size()) + kTilePositions - 1) / kTilePositions;
}

// Whether the history of an item is cut: where its KV heads alone would leave threads without work.
bool is_split(const ModelConfig& c, std::span<const BatchItem> items, int threads, const BatchItem& item) {
  return threads > 1 && item.tokens.size() == 1 && tiles_of(item) >= kSplitTiles &&
         static_cast<int>(items.size()) * c.kv_heads < kUnitsPerThread * threads;
}

/// One token whose history is computed tile by tile.
struct Split {
  std::vector<Tile> tiles;    // that it sees some of
  Rows states;                // [tiles * heads][2 + head_dim]
  std::atomic<int> units{0};  // not yet done
};

/// What one thread does at a time: some tokens of one KV head, or some tiles of a split token.
struct Unit {
  size_t item;
  int first, count;
  int kv_head;  // not of a split token
};

class Attention {
 public:
  Attention(Pass& pass, int layer, const Rows& q)
      : pass_(pass), q_(q), out_(pass.workspace().take(q.n, q.cols)), tiles_(pass.items().size()) {
    for (size_t i = 0; i < tiles_.size(); ++i) {
      const BatchItem& item = pass.items()[i];
      splits_.emplace_back();
      item.cache->tiles(layer, item.first + static_cast<int>(item.tokens.size()), &tiles_[i]);
      if (is_split(pass.config(), pass.items(), pass.compute().threads(), item))
        plan_split(i);
      else
        plan_whole(i);
    }
  }

  Rows run() {
    pass_.compute().pool().run(static_cast<int>(units_.size()), [this](int u, int worker) {
      const Unit& unit = units_[static_cast<size_t>(u)];
      if (splits_[unit.item].tiles.empty())
        attend_tokens(unit, worker);
      else
        attend_tiles(unit, worker);
    });
    return out_;
  }

 private:
  void plan_whole(size_t i) {
    const int n = static_cast<int>(pass_.items()[i].tokens.size());
    for (int t = 0; t < n; t += kTokensPerUnit)
      for (int h = 0; h < pass_.config().kv_heads; ++h) units_.push_back({i, t, std::min(kTokensPerUnit, n - t), h});
  }

  void plan_split(size_t i) {
    const ModelConfig& c = pass_.config();
    Split& split = splits_[i];
    for (const Tile& tile : tiles_[i])
      if ((tile.live & live_below(tile.first, pass_.items()[i].first + 1)) != 0) split.tiles.push_back(tile);
    const int n = static_cast<int>(split.tiles.size());
    split.states = pass_.workspace().take(n * c.heads, c.head_dim + 2);
    const int per_unit = std::max(1, n / (kUnitsPerThread * pass_.compute().threads()));
    split.units = (n + per_unit - 1) / per_unit;
    for (int j = 0; j < n; j += per_unit) units_.push_back({i, j, std::min(per_unit, n - j), 0});
  }

  AttendArgs args_of(const Unit& unit, int kv_head, int first_token, int worker) const {
    const ModelConfig& c = pass_.config();
    const BatchItem& item = pass_.items()[unit.item];
    const CacheShape& shape = item.cache->shape();
    const int row = pass_.first_row(unit.item) + first_token;
    const int64_t head = int64_t{kv_head} * c.group() * c.head_dim;
    AttendArgs args;
    args.head_dim = c.head_dim;
    args.group = c.group();
    args.first_pos = item.first + first_token;
    args.scale = c.attention_scale();
    args.k_offset = static_cast<size_t>(kv_head) * shape.k->row_bytes(c.head_dim);
    args.v_offset = static_cast<size_t>(kv_head) * shape.v->row_bytes(c.head_dim);
    args.k_form = shape.k->form;
    args.v_form = shape.v->form;
    args.decode_k = shape.k->decode;
    args.decode_v = shape.v->decode;
    args.q = q_.row(row) + head;
    args.out = out_.row(row) + head;
    args.q_stride = q_.stride;
    args.out_stride = out_.stride;
    args.scratch = pass_.compute().scratch(worker);
    return args;
  }

  void attend_tokens(const Unit& unit, int worker) const {
    AttendArgs args = args_of(unit, unit.kv_head, unit.first, worker);
    args.tiles = tiles_[unit.item].data();
    args.tile_count = static_cast<int>(tiles_[unit.item].size());
    args.tokens = unit.count;
    pass_.kernels().attend(args);
  }

  // All heads of a tile while its rows are near; who finishes the last unit merges them.
  void attend_tiles(const Unit& unit, int worker) {
    const ModelConfig& c = pass_.config();
    Split& split = splits_[unit.item];
    for (int j = unit.first; j < unit.first + unit.count; ++j)
      for (int h = 0; h < c.kv_heads; ++h) {
        AttendArgs args = args_of(unit, h, 0, worker);
        args.tiles = &split.tiles[static_cast<size_t>(j)];
        args.tile_count = unit.first + unit.count - j;
        args.tokens = 1;
        pass_.kernels().attend_tile(args, split.states.row(j * c.heads + h * c.group()));
      }
    if (split.units.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    pass_.kernels().merge_tiles({split.states.data, static_cast<int>(split.tiles.size()), c.heads, c.head_dim,
                                 out_.row(pass_.first_row(unit.item))});
  }

  Pass& pass_;
  const Rows q_, out_;
  std::vector<std::vector<Tile>> tiles_;  // of each item
  std::deque<Split> splits_;              // of each item; without tiles where it is not split
  std::vector<Unit> units_;
};

}  // namespace

int64_t attend_state_floats(const ModelConfig& c, std::span<const BatchItem> items, int threads) {
  int64_t floats = 0;
  for (const BatchItem& item : items)
    if (is_split(c, items, threads, item))
      floats += static_cast<int64_t>(Workspace::floats_for(tiles_of(item) * c.heads, c.head_dim + 2));
  return floats;
}

Rows attend(Pass& pass, int layer, const Rows& q, const Rows& k, const Rows& v) {
  pass.compute().for_rows(k.n,
                          [&](int t) { pass.item_of(t).cache->write(layer, pass.position(t), k.row(t), v.row(t)); });
  return Attention(pass, layer, q).run();
}

}  // namespace kvasir
