// The Layout interface: where one sequence's K and V rows live. A layout never does arithmetic, a kernel never does
// addressing. One file per layout in layouts/, found by CMake's glob.
//
// A forward pass calls a layout in this order, on one thread except where noted:
//   prepare(end) -> apply -> for every layer: write rows (several threads, distinct rows), tiles(layer, end) ->
//   commit(end), ONCE
// A step of generation ends with end_step().
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <kvasir/result.h>

#include "cache/kv_type.h"
#include "math/tile.h"

namespace kvasir {

class BlockPool;

/// Shape of the stored K and V, the same for every layout.
struct CacheShape {
  int layers = 0, kv_heads = 0, head_dim = 0, max_ctx = 0;
  const KvType* k = nullptr;
  const KvType* v = nullptr;
  std::vector<int> windows{};  ///< positions that a query sees, by layer; 0: all. Empty: all, in every layer
  /// Number of first positions that a query with a window also sees, 0..kTilePositions. Their keys are stored before
  /// RoPE and rotated for each query to the positions just before its window.
  int sinks = 0;
  /// Keys use the RoPE variant of sessions longer than the model's original context (LongRoPE). Rows of the two
  /// variants never mix.
  bool long_rope = false;
  /// Upper bound of the positions that one pass appends or one truncation removes. A layout that forgets holds this
  /// many beyond the window.
  int lookahead = 256;

  /// Positions that a query of this layer sees, itself included; 0: all.
  int window(int layer) const { return windows.empty() ? 0 : windows[static_cast<size_t>(layer)]; }

  /// Whether a sequence of `length` positions can continue although this layer lacks the positions below `oldest`
  /// (sinks apart): true if the next query does not see them.
  bool goes_on_from(int layer, int length, int oldest) const;

  /// Upper bound of the positions that a query of any layer sees.
  int most_seen() const;
  /// The windows as text, part of receipts: "none", "512 sinks 4", "64,0,64,0" by layer, "none long_rope".
  std::string window_policy() const;

  /// Bytes of one position in one layer: kv_heads * ceil(head_dim / block_elems) * block_bytes.
  size_t k_row_bytes() const { return static_cast<size_t>(kv_heads) * k->codec->row_bytes(head_dim); }
  size_t v_row_bytes() const { return static_cast<size_t>(kv_heads) * v->codec->row_bytes(head_dim); }
  /// Bytes of one position in all layers.
  size_t position_bytes() const { return static_cast<size_t>(layers) * (k_row_bytes() + v_row_bytes()); }
};

class Layout;

/// A layout's entry in the registry: everything known before memory is allocated.
struct LayoutInfo {
  std::string_view name;
  std::string_view summary;  ///< one line: what it does
  std::string_view trade;    ///< one line: what it costs, and what for
  bool recomputes = false;   ///< drops all rows at the end of each step
  bool pooled = false;       ///< takes blocks from a BlockPool as positions arrive, returns them when positions go
  bool drops_old = false;    ///< drops rows that no window sees any more; truncating to a length that needs them fails
  /// Bytes held by a sequence that has reached `positions`.
  size_t (*bytes)(const CacheShape& shape, int positions) = nullptr;
  /// Peak of bytes held while reaching `positions` one token at a time.
  size_t (*peak_bytes)(const CacheShape& shape, int positions) = nullptr;
  Result<std::unique_ptr<Layout>> (*create)(const CacheShape& shape, std::shared_ptr<BlockPool> pool) = nullptr;

  /// Creates an empty sequence. Without a pool, a pooled layout creates its own, without a limit. Errors: no memory.
  Result<std::unique_ptr<Layout>> make(const CacheShape& shape, std::shared_ptr<BlockPool> pool = {}) const {
    return create(shape, std::move(pool));
  }
};

/// Every layout of this build, in file-name order.
std::span<const LayoutInfo* const> layouts();
/// Finds a layout by name. Errors: an unknown name, with the list of known ones.
Result<const LayoutInfo*> find_layout(std::string_view name);
/// Makes find_layout() also find a layout that is not in layouts(). Requires: `info` lives as long as the program, and
/// no other thread is in find_layout().
void add_layout(const LayoutInfo& info);

class Layout {
 public:
  /// Prepared growth, for apply(). Each layout defines its own contents.
  struct Growth {
    virtual ~Growth() = default;
  };

  struct Row {
    std::byte* k;
    std::byte* v;
  };

  virtual ~Layout() = default;

  virtual const LayoutInfo& info() const = 0;
  const CacheShape& shape() const { return shape_; }

  /// Prepares room for positions [0, end). Changes nothing in the layout. Null if there is room already. Errors: end >
  /// max_ctx, no memory.
  virtual Result<std::unique_ptr<Growth>> prepare(int end) const = 0;
  /// Puts the prepared room in place. Cannot fail.
  virtual void apply(std::unique_ptr<Growth> growth) = 0;
  /// Returns the address of position `pos` of `layer`. Requires: room was prepared and applied.
  virtual Row row(int layer, int pos) = 0;
  /// Appends the tiles that hold positions [0, end), ascending.
  virtual void tiles(int layer, int end, std::vector<Tile>* out) const = 0;
  /// Sets the length of the sequence. Called once per forward pass, after the last layer.
  virtual void commit(int length) = 0;
  /// Whether the sequence can continue from its first `length` positions. Errors: fewer are held, or the next query's
  /// windows need positions that were forgotten.
  Result<void> check_length(int length) const;
  /// Removes positions >= length. Errors: those of check_length(); nothing changes then.
  Result<void> truncate(int length);
  /// Takes over the first `length` positions of `from`, whose layout may differ and whose shape must be equal except
  /// for max_ctx and lookahead. Copies the rows, or shares blocks if both caches use one pool. Requires: this cache is
  /// empty. Errors: those of check_length(), no memory, more than max_ctx.
  Result<void> adopt(const Layout& from, int length);
  /// Fills this cache with positions [0, length) from elsewhere: makes room, then calls `fill` to write the rows. The
  /// source lacks the positions below oldest[layer], sinks apart. Requires: this cache is empty. Errors: those of
  /// prepare() and of `fill`; the cache is empty then.
  Result<void> restore(int length, std::span<const int> oldest, const std::function<Result<void>(Layout&)>& fill);
  /// Called when a step of generation is over.
  virtual void end_step() {}

  /// Length of the sequence. Positions [0, coverage()) are held, except those that no window sees any more.
  virtual int coverage() const = 0;
  /// Lowest position that the layer still holds, sinks apart.
  virtual int oldest(int layer) const { return floor(layer); }
  /// A piece of memory. Layouts that share one report the same id, so that a caller can count it once.
  struct Piece {
    const void* id;
    size_t bytes;
    int holders;  ///< number of layouts that hold it
  };
  /// All pieces held, in the order of positions.
  virtual std::vector<Piece> memory() const { return {{this, bytes(), 1}}; }
  /// The piece that replaced a shared one last, since the sequence wrote to it; null: none.
  virtual const void* last_copy() const { return nullptr; }
  /// Bytes allocated now, exactly.
  virtual size_t bytes() const = 0;
  virtual size_t peak_bytes() const = 0;
  /// Positions that fit into the memory held now.
  virtual int capacity() const = 0;
  virtual int growths() const = 0;
  /// Positions copied by growth so far (each is a row in every layer).
  virtual size_t copied_rows() const = 0;

  /// Stores one position; k and v are f32 rows [kv_heads * head_dim]. Threads may write distinct positions at once.
  void write(int layer, int pos, const float* k, const float* v);
  /// Number of values written so far that were outside the storage type's range.
  int64_t saturated() const { return saturated_; }

 protected:
  explicit Layout(const CacheShape& shape) : shape_(shape), floors_(static_cast<size_t>(shape.layers)) {}
  /// Shortens the sequence to `length` positions. Requires: length <= coverage().
  virtual void cut(int length) = 0;
  /// Shares the first `length` positions of `from` without copying, or returns false and changes nothing.
  virtual bool share(const Layout& /*from*/, int /*length*/) { return false; }
  /// Lowest position that this layer still holds (sinks apart), as set when a sequence is truncated or adopted, since a
  /// ring may already have overwritten older rows.
  int floor(int layer) const { return floors_[static_cast<size_t>(layer)]; }

 private:
  void hold(int length, std::span<const int> oldest);

  CacheShape shape_;
  std::vector<int> floors_;
  std::atomic<int64_t> saturated_{0};
};

/// The error for a request beyond max_ctx.
tl::unexpected<Error> past_context(int end, int max_ctx);

/// positions * shape.position_bytes(), or SIZE_MAX on overflow, which no system can allocate.
size_t bytes_of_positions(const CacheShape& shape, int64_t positions);

/// Appends the tiles of contiguous rows that start at position 0.
void append_contiguous_tiles(const std::byte* k, size_t k_stride, const std::byte* v, size_t v_stride, int end,
                             std::vector<Tile>* out);

}  // namespace kvasir
