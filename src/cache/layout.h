// The Layout interface: where one sequence's K and V rows live. A layout never does arithmetic, a kernel never does
// addressing. One file per layout in layouts/, found by CMake's glob.
//
// A forward pass uses a layout in this order, on one thread except where said:
//   plan(end) -> apply -> for every layer: write rows (threads, distinct rows), tiles(layer, end) -> commit(end), ONCE
// and a step of generation ends with end_step().
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

/// What has to be stored, whatever the layout.
struct CacheShape {
  int layers = 0, kv_heads = 0, head_dim = 0, max_ctx = 0;
  const KvType* k = nullptr;
  const KvType* v = nullptr;
  std::vector<int> windows{};  ///< of each layer: positions that a query sees, 0 for all; empty: all
  /// With a window, so many first positions are seen too, from right before the window: their keys are stored before
  /// RoPE and rotated for each query. 0..kTilePositions.
  int sinks = 0;
  /// Keys are rotated as in sessions past the model's original context (LongRoPE): rows of the two kinds never mix.
  bool long_rope = false;
  /// Positions that a pass appends at most, or a truncation takes back: what a layout that forgets keeps besides.
  int lookahead = 256;

  /// Positions that a query of this layer sees, itself included; 0: all.
  int window(int layer) const { return windows.empty() ? 0 : windows[static_cast<size_t>(layer)]; }

  /// Whether a sequence of `length` positions can go on where a layer lacks those below `oldest`, sinks apart: the next
  /// query does not see them.
  bool goes_on_from(int layer, int length, int oldest) const;

  /// The most positions that a query of any layer sees.
  int most_seen() const;
  /// What a query sees, in words: "none", "512 sinks 4", "64,0,64,0" by layer; "none long_rope". Part of receipts.
  std::string window_policy() const;

  /// Bytes of one position in one layer: kv_heads * ceil(head_dim / block_elems) * block_bytes.
  size_t k_row_bytes() const { return static_cast<size_t>(kv_heads) * k->codec->row_bytes(head_dim); }
  size_t v_row_bytes() const { return static_cast<size_t>(kv_heads) * v->codec->row_bytes(head_dim); }
  /// Bytes of one position in all layers.
  size_t position_bytes() const { return static_cast<size_t>(layers) * (k_row_bytes() + v_row_bytes()); }
};

class Layout;

/// A layout's entry in the registry: everything that can be known before any memory is taken.
struct LayoutInfo {
  std::string_view name;
  std::string_view summary;  ///< what it does, in a line
  std::string_view trade;    ///< what it costs and what for, in a line
  bool keeps = true;         ///< false: forgets everything at the end of each step
  bool pooled = false;       ///< takes blocks of a BlockPool as positions come, gives them back when they go
  bool forgets = false;      ///< what no window sees any more; then truncation below what is held is refused
  /// Bytes that a sequence which has reached `positions` holds.
  size_t (*bytes)(const CacheShape& shape, int positions) = nullptr;
  /// The most bytes held at any moment on the way there, one token at a time.
  size_t (*peak_bytes)(const CacheShape& shape, int positions) = nullptr;
  Result<std::unique_ptr<Layout>> (*create)(const CacheShape& shape, std::shared_ptr<BlockPool> pool) = nullptr;

  /// An empty sequence. Without a pool a pooled layout has one of its own, without a limit. Errors: no memory.
  Result<std::unique_ptr<Layout>> make(const CacheShape& shape, std::shared_ptr<BlockPool> pool = {}) const {
    return create(shape, std::move(pool));
  }
};

/// Every layout of this build, in file-name order.
std::span<const LayoutInfo* const> layouts();
/// Errors: an unknown name, with the list of known ones.
Result<const LayoutInfo*> find_layout(std::string_view name);
/// Lets find_layout() find a layout that is not one of layouts() too. Requires: `info` lives as long as the program,
/// and no other thread is in find_layout().
void add_layout(const LayoutInfo& info);

class Layout {
 public:
  /// New memory for a growth; what is inside is the layout's own.
  struct Plan {
    virtual ~Plan() = default;
  };

  struct Row {
    std::byte* k;
    std::byte* v;
  };

  virtual ~Layout() = default;

  virtual const LayoutInfo& info() const = 0;
  const CacheShape& shape() const { return shape_; }

  /// Room for positions [0, end): may fail, changes nothing. Null when there is nothing to do.
  virtual Result<std::unique_ptr<Plan>> plan(int end) const = 0;
  /// Cannot fail.
  virtual void apply(std::unique_ptr<Plan> plan) = 0;
  /// Where position `pos` of `layer` is stored. Requires: planned and applied.
  virtual Row row(int layer, int pos) = 0;
  /// Appends the tiles that hold positions [0, end), ascending.
  virtual void tiles(int layer, int end, std::vector<Tile>* out) const = 0;
  /// The sequence now has `length` positions. Once per forward pass, after the last layer.
  virtual void commit(int length) = 0;
  /// Whether the sequence could go on from its first `length` positions. Errors: fewer are held, or some that the next
  /// query's windows see are forgotten.
  Result<void> check_length(int length) const;
  /// Forgets positions >= length; exact, or an error of check_length() and nothing changed.
  Result<void> truncate(int length);
  /// Takes over the first `length` positions of a cache of any layout, of the same shape but for max_ctx and lookahead:
  /// copied, or shared where both have blocks of one pool. Requires: nothing is held. Errors: those of check_length(),
  /// no memory, more than max_ctx.
  Result<void> adopt(const Layout& from, int length);
  /// Positions [0, length) that come from elsewhere: once there is room, `fill` writes their rows; below `oldest` of
  /// each layer, sinks apart, there are none. Requires: nothing is held. Errors: those of plan() and of `fill`; then
  /// nothing is held.
  Result<void> restore(int length, std::span<const int> oldest, const std::function<Result<void>(Layout&)>& fill);
  /// A step of generation is over.
  virtual void end_step() {}

  /// Positions [0, coverage()) are held, but for those that no window sees any more.
  virtual int coverage() const = 0;
  /// Of the positions of a layer that are no sinks, those below are forgotten.
  virtual int oldest(int layer) const { return floor(layer); }
  /// A piece of memory. One that several layouts share has the same id in all of them.
  struct Piece {
    const void* id;
    size_t bytes;
    int holders;  ///< layouts that hold it
  };
  /// All pieces that it holds, in the order of positions.
  virtual std::vector<Piece> memory() const { return {{this, bytes(), 1}}; }
  /// Exact: what is allocated now.
  virtual size_t bytes() const = 0;
  virtual size_t peak_bytes() const = 0;
  /// Positions that the memory held now can take.
  virtual int capacity() const = 0;
  virtual int growths() const = 0;
  /// Positions that growing has copied so far (each a row in every layer).
  virtual size_t copied_rows() const = 0;

  /// Stores one position: k and v are f32 rows of kv_heads * head_dim. Distinct positions may be written at once.
  void write(int layer, int pos, const float* k, const float* v);
  /// Values written so far that the storage type could not hold.
  int64_t saturated() const { return saturated_; }

 protected:
  explicit Layout(const CacheShape& shape) : shape_(shape), floors_(static_cast<size_t>(shape.layers)) {}
  /// The sequence has `length` positions, of those held.
  virtual void cut(int length) = 0;
  /// Holds the first `length` positions of `from` together with it, or does nothing and says so.
  virtual bool share(const Layout& /*from*/, int /*length*/) { return false; }
  /// Of a layer: positions below were forgotten before the sequence was cut to, or came with, what it has now.
  int floor(int layer) const { return floors_[static_cast<size_t>(layer)]; }

 private:
  void hold(int length, std::span<const int> oldest);

  CacheShape shape_;
  std::vector<int> floors_;
  std::atomic<int64_t> saturated_{0};
};

/// The refusal of a layout asked for more than max_ctx.
tl::unexpected<Error> past_context(int end, int max_ctx);

/// positions * shape.position_bytes(), or the largest size, which no system gives.
size_t bytes_of_positions(const CacheShape& shape, int64_t positions);

/// Appends the tiles of a run of contiguous rows that begins at position 0.
void append_contiguous_tiles(const std::byte* k, size_t k_stride, const std::byte* v, size_t v_stride, int end,
                             std::vector<Tile>* out);

}  // namespace kvasir
