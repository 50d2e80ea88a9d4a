// The Layout interface: where one sequence's K and V rows live. A layout never does arithmetic, a kernel never does
// addressing. One file per layout in layouts/, found by CMake's glob.
//
// A forward pass uses a layout in this order, on one thread except where said:
//   plan(end) -> apply -> for every layer: write rows (threads, distinct rows), tiles(layer, end) -> commit(end), ONCE
// and a step of generation ends with end_step().
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <kvasir/result.h>

#include "dtype/codec.h"
#include "math/tile.h"

namespace kvasir {

/// What has to be stored, whatever the layout.
struct CacheShape {
  int layers = 0, kv_heads = 0, head_dim = 0, max_ctx = 0;
  const Codec* k = nullptr;
  const Codec* v = nullptr;

  /// Bytes of one position in one layer: kv_heads * ceil(head_dim / block_elems) * block_bytes.
  size_t k_row_bytes() const { return static_cast<size_t>(kv_heads) * k->row_bytes(head_dim); }
  size_t v_row_bytes() const { return static_cast<size_t>(kv_heads) * v->row_bytes(head_dim); }
  /// Bytes of one position in all layers.
  size_t position_bytes() const { return static_cast<size_t>(layers) * (k_row_bytes() + v_row_bytes()); }
};

class Layout;

/// A layout's entry in the registry: everything that can be known before any memory is taken.
struct LayoutInfo {
  std::string_view name;
  std::string_view summary;  ///< what it does, in a line
  std::string_view trade;    ///< what it costs and what for, in a line
  bool keeps;                ///< false: forgets everything at the end of each step
  /// Positions of memory that a sequence which has reached `positions` holds.
  int (*capacity)(int positions, int max_ctx);
  /// The most positions held at any moment on the way there, one token at a time.
  int64_t (*peak_capacity)(int positions, int max_ctx);
  Result<std::unique_ptr<Layout>> (*make)(const CacheShape& shape);

  size_t bytes(const CacheShape& s, int positions) const {
    return static_cast<size_t>(capacity(positions, s.max_ctx)) * s.position_bytes();
  }
  size_t peak_bytes(const CacheShape& s, int positions) const {
    return static_cast<size_t>(peak_capacity(positions, s.max_ctx)) * s.position_bytes();
  }
};

/// The types that K and V may be stored in: those of floats. Integer types are for weights.
std::vector<const Codec*> kv_codecs();

/// Every layout of this build, in file-name order.
std::span<const LayoutInfo* const> layouts();
/// Errors: an unknown name, with the list of known ones.
Result<const LayoutInfo*> find_layout(std::string_view name);

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
  /// Forgets positions >= length; exact, or an error and nothing changed.
  virtual Result<void> truncate(int length) = 0;
  /// A step of generation is over.
  virtual void end_step() {}

  /// Positions [0, coverage()) are held.
  virtual int coverage() const = 0;
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
  explicit Layout(const CacheShape& shape) : shape_(shape) {}

 private:
  CacheShape shape_;
  std::atomic<int64_t> saturated_{0};
};

/// Appends the tiles of a run of contiguous rows that begins at position 0.
void append_contiguous_tiles(const std::byte* k, size_t k_stride, const std::byte* v, size_t v_stride, int end,
                             std::vector<Tile>* out);

}  // namespace kvasir
