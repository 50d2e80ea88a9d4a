// The attention block: writes K and V rows to the caches, then divides the queries into work units for the threads. The
// division changes no bit of the result: each tile is computed alone, and tiles are merged in order (docs/numerics.md).
#include <algorithm>
#include <atomic>
#include <deque>
#include <vector>

#include "arch/layer_ops.h"
#include "arch/shared_tiles.h"
#include "arch/sink_tile.h"
#include "math/hadamard.h"

namespace kvasir {
namespace {

constexpr int kTokensPerUnit = 16;  // enough to reuse a tile's rows, small enough to share evenly
static_assert(kTokensPerUnit <= kMaxAttendTokens);
constexpr int kSplitTiles = 4;      // a history of this many tiles is worth splitting over threads
constexpr int kUnitsPerThread = 4;  // enough to share evenly

// Upper bound of the tiles that one token of this item attends to.
int tiles_of(const BatchItem& item) {
  const int end = item.first + static_cast<int>(item.tokens.size());
  const int held = (end + kTilePositions - 1) / kTilePositions;
  return std::min(held, item.cache->shape().most_seen() / kTilePositions + 2);
}

// Whether the first tile looks different to each query, since sinks are rotated for each.
bool sinks_move(const BatchItem& item) { return item.cache->shape().sinks > 0; }

// Whether the item's history is split over threads. It is if the KV heads alone would leave threads without work.
bool is_split(const ModelConfig& c, std::span<const BatchItem> items, int threads, const BatchItem& item) {
  return threads > 1 && item.tokens.size() == 1 && tiles_of(item) >= kSplitTiles && !sinks_move(item) &&
         static_cast<int>(items.size()) * c.kv_heads < kUnitsPerThread * threads;
}

/// One token whose history is computed tile by tile.
struct Split {
  std::vector<Tile> tiles;    // those that the token attends to
  Rows states;                // [tiles * heads, 2 + head_dim]; null scores are one more tile, the first
  std::atomic<int> units{0};  // not yet finished
};

/// One thread's piece of work: some tokens for one KV head; or some tiles of a split token; or all tokens of some items
/// that share tiles, for one KV head.
struct Unit {
  size_t item;
  int first, count;
  int kv_head;      // unused for a split token
  int shared = -1;  // index into shares_, or -1; if set, `first` and `count` select from its items
};

class Attention {
 public:
  Attention(Pass& pass, int layer, const Rows& q, const float* null_scores)
      : pass_(pass),
        layer_(layer),
        null_scores_(null_scores),
        q_(q),
        out_(pass.workspace().take(q.n, q.cols)),
        tiles_(pass.items().size()) {
    for (size_t i = 0; i < tiles_.size(); ++i) tiles_[i] = seen_tiles(pass.items()[i]);
    const std::vector<bool> shares = plan_shared();
    for (size_t i = 0; i < tiles_.size(); ++i) {
      splits_.emplace_back();
      if (shares[i]) continue;
      if (is_split(i))
        plan_split(i);
      else
        plan_whole(i);
    }
  }

  Rows run() {
    pass_.compute().pool().run(static_cast<int>(units_.size()), [this](int u, int worker) {
      const Unit& unit = units_[static_cast<size_t>(u)];
      if (unit.shared >= 0)
        attend_shared(unit, worker);
      else if (!splits_[unit.item].tiles.empty())
        attend_tiles(unit, worker);
      else if (sinks_move(pass_.items()[unit.item]))
        attend_after_sinks(unit, worker);
      else
        attend_tokens(unit, worker);
    });
    return out_;
  }

 private:
  // The tiles of which at least one token of the item attends to a row.
  std::vector<Tile> seen_tiles(const BatchItem& item) const {
    const int end = item.first + static_cast<int>(item.tokens.size());
    const CacheShape& shape = item.cache->shape();
    std::vector<Tile> tiles;
    item.cache->tiles(layer_, end, &tiles);
    std::erase_if(tiles, [&](const Tile& tile) {
      return (tile.live & seen_rows(tile.first, item.first, end - 1, shape.window(layer_), shape.sinks)) == 0;
    });
    return tiles;
  }

  bool is_split(size_t i) const {
    return kvasir::is_split(pass_.config(), pass_.items(), pass_.compute().threads(), pass_.items()[i]);
  }

  // Whether all tokens of the item can be attended in one unit, together with those of other items.
  bool may_share(size_t i) const {
    const BatchItem& item = pass_.items()[i];
    return item.tokens.size() <= kTokensPerUnit && !is_split(i) && !sinks_move(item);
  }

  // Plans the items that share tiles, first because their units are the longest. Returns which items these are.
  std::vector<bool> plan_shared() {
    std::vector<bool> shares(tiles_.size());
    if (tiles_.size() < 2) return shares;
    std::vector<std::span<const Tile>> tiles(tiles_.size());
    for (size_t i = 0; i < tiles.size(); ++i)
      if (may_share(i)) tiles[i] = tiles_[i];
    shares_ = find_shared_tiles(tiles);
    for (size_t g = 0; g < shares_.size(); ++g) {
      for (const size_t i : shares_[g].items) shares[i] = true;
      cut_shared(static_cast<int>(g));
    }
    return shares;
  }

  // Units with enough tokens to reuse a tile's rows well, in a number that the threads can share evenly.
  void cut_shared(int g) {
    const std::vector<size_t>& items = shares_[static_cast<size_t>(g)].items;
    const int threads = pass_.compute().threads(), heads = pass_.config().kv_heads;
    const auto tokens_of = [&](size_t at) { return static_cast<int>(pass_.items()[items[at]].tokens.size()); };
    int tokens = 0;
    for (size_t at = 0; at < items.size(); ++at) tokens += tokens_of(at);
    int parts = (tokens + kTokensPerUnit - 1) / kTokensPerUnit;
    while (heads * parts % threads != 0 && heads * parts < kUnitsPerThread * threads) ++parts;
    const int per_unit = (tokens + parts - 1) / parts;
    for (size_t begin = 0, end = 0; begin < items.size(); begin = end) {
      int taken = 0;
      while (end < items.size() && (end == begin || taken + tokens_of(end) <= per_unit)) taken += tokens_of(end++);
      for (int h = 0; h < heads; ++h)
        units_.push_back({items[begin], static_cast<int>(begin), static_cast<int>(end - begin), h, g});
    }
  }

  void plan_whole(size_t i) {
    const int n = static_cast<int>(pass_.items()[i].tokens.size());
    for (int t = 0; t < n; t += kTokensPerUnit)
      for (int h = 0; h < pass_.config().kv_heads; ++h) units_.push_back({i, t, std::min(kTokensPerUnit, n - t), h});
  }

  void plan_split(size_t i) {
    const ModelConfig& c = pass_.config();
    Split& split = splits_[i];
    split.tiles = tiles_[i];
    const int n = static_cast<int>(split.tiles.size());
    split.states = pass_.workspace().take((n + nulls()) * c.heads, c.head_dim + 2);
    for (int h = 0; h < nulls() * c.heads; ++h) {
      std::fill_n(split.states.row(h), split.states.cols, 0.0f);
      split.states.row(h)[0] = null_scores_[h];
      split.states.row(h)[1] = 1.0f;
    }
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
    args.window = shape.window(layer_);
    args.sinks = shape.sinks;
    args.scale = c.attention_scale();
    args.cap = c.score_cap;
    if (null_scores_ != nullptr) args.null_scores = null_scores_ + int64_t{kv_head} * c.group();
    args.k_offset = static_cast<size_t>(kv_head) * shape.k->codec->row_bytes(c.head_dim);
    args.v_offset = static_cast<size_t>(kv_head) * shape.v->codec->row_bytes(c.head_dim);
    args.k_form = shape.k->codec->form;
    args.v_form = shape.v->codec->form;
    args.decode_k = shape.k->codec->decode;
    args.decode_v = shape.v->codec->decode;
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

  // First the tiles that all items share, then each item's own.
  void attend_shared(const Unit& unit, int worker) const {
    const ModelConfig& c = pass_.config();
    const SharedTiles& shared = shares_[static_cast<size_t>(unit.shared)];
    const auto items =
        std::span(shared.items).subspan(static_cast<size_t>(unit.first), static_cast<size_t>(unit.count));
    const int64_t head = int64_t{unit.kv_head} * c.group() * c.head_dim;
    std::vector<AttendRow> rows;
    for (const size_t i : items)
      for (int t = 0; t < static_cast<int>(pass_.items()[i].tokens.size()); ++t) {
        const int row = pass_.first_row(i) + t;
        rows.push_back({pass_.position(row), q_.row(row) + head, out_.row(row) + head});
      }
    AttendArgs args = args_of(unit, unit.kv_head, 0, worker);
    args.tiles = tiles_[unit.item].data();
    args.tile_count = shared.tiles;
    args.rows = rows.data();
    args.tokens = static_cast<int>(rows.size());
    args.states = args.scratch + attend_scratch_floats(c.head_dim, c.group(), 0);
    args.ends = false;
    pass_.kernels().attend(args);
    args.begun = args.ends = true;
    for (const size_t i : items) {
      args.tiles = tiles_[i].data() + shared.tiles;
      args.tile_count = static_cast<int>(tiles_[i].size()) - shared.tiles;
      args.tokens = static_cast<int>(pass_.items()[i].tokens.size());
      pass_.kernels().attend(args);
      args.rows += args.tokens;
      args.states += int64_t{args.tokens} * c.group() * (c.head_dim + 2);
    }
  }

  // One token at a time: each sees another first tile.
  void attend_after_sinks(const Unit& unit, int worker) const {
    const int64_t d = pass_.config().head_dim;
    for (int t = unit.first; t < unit.first + unit.count; ++t) {
      AttendArgs args = args_of(unit, unit.kv_head, t, worker);
      FirstTile first(pass_, layer_, pass_.first_row(unit.item) + t, args.scratch);
      const std::vector<Tile> tiles = first.assemble(tiles_[unit.item], unit.kv_head);
      args.tiles = tiles.data();
      args.tile_count = static_cast<int>(tiles.size());
      args.tokens = 1;
      args.first_k = first.k();
      args.first_v = first.v();
      args.scratch += 2 * kTilePositions * d;
      pass_.kernels().attend(args);
    }
  }

  // Computes all heads of a tile while its rows are in the CPU's cache. The thread that finishes the last unit merges.
  void attend_tiles(const Unit& unit, int worker) {
    const ModelConfig& c = pass_.config();
    Split& split = splits_[unit.item];
    for (int j = unit.first; j < unit.first + unit.count; ++j)
      for (int h = 0; h < c.kv_heads; ++h) {
        AttendArgs args = args_of(unit, h, 0, worker);
        args.tiles = &split.tiles[static_cast<size_t>(j)];
        args.tile_count = unit.first + unit.count - j;
        args.tokens = 1;
        pass_.kernels().attend_tile(args, split.states.row((j + nulls()) * c.heads + h * c.group()));
      }
    if (split.units.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    pass_.kernels().merge_tiles({split.states.data, static_cast<int>(split.tiles.size()) + nulls(), c.heads, c.head_dim,
                                 out_.row(pass_.first_row(unit.item))});
  }

  // Number of tiles of null scores.
  int nulls() const { return null_scores_ != nullptr ? 1 : 0; }

  Pass& pass_;
  const int layer_;
  const float* const null_scores_;  // [heads], or null
  const Rows q_, out_;
  std::vector<std::vector<Tile>> tiles_;  // [items]
  std::vector<SharedTiles> shares_;
  std::deque<Split> splits_;  // [items]; without tiles if the item is not split
  std::vector<Unit> units_;
};

}  // namespace

int64_t attend_state_floats(const ModelConfig& c, std::span<const BatchItem> items, int threads) {
  int64_t floats = 0;
  for (const BatchItem& item : items)
    if (is_split(c, items, threads, item))
      floats += static_cast<int64_t>(Workspace::floats_for((tiles_of(item) + c.null_scores) * c.heads, c.head_dim + 2));
  return floats;
}

Rows attend(Pass& pass, int layer, const Rows& q, const Rows& k, const Rows& v, const float* null_scores) {
  const ModelConfig& c = pass.config();
  pass.compute().for_rows(k.n, [&](int t) {
    Layout& cache = *pass.item_of(t).cache;
    if (cache.shape().k->rotated)
      rotate_heads(q.row(t), c.heads, c.head_dim), rotate_heads(k.row(t), c.kv_heads, c.head_dim);
    if (cache.shape().v->rotated) rotate_heads(v.row(t), c.kv_heads, c.head_dim);
    cache.write(layer, pass.position(t), k.row(t), v.row(t));
  });
  const Rows out = Attention(pass, layer, q, null_scores).run();
  const auto rotated = [](const BatchItem& item) { return item.cache->shape().v->rotated; };
  if (std::any_of(pass.items().begin(), pass.items().end(), rotated))
    pass.compute().for_rows(out.n, [&](int t) {
      if (rotated(pass.item_of(t))) rotate_heads(out.row(t), c.heads, c.head_dim);
    });
  return out;
}

}  // namespace kvasir
