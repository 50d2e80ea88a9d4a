// A layout over reserved address space: each layer's rows lie side by side, and their pages are taken as positions
// arrive, so nothing is ever copied. A layer with a window may be a ring, whose rows are overwritten.
#pragma once

#include <algorithm>
#include <atomic>

#include "base/buffer.h"
#include "cache/layout.h"

namespace kvasir {

class ReservedLayout : public Layout {
 public:
  /// A layer is a ring if info.drops_old and it has a window. Errors: no address space.
  static Result<std::unique_ptr<Layout>> make(const LayoutInfo& info, const CacheShape& shape);
  /// Bytes held by a sequence that has reached `positions`: whole pages of every layer's K and V.
  static size_t bytes_for(const CacheShape& shape, int positions, bool rings);

  const LayoutInfo& info() const override { return info_; }
  Result<std::unique_ptr<Growth>> prepare(int end) const override;
  void apply(std::unique_ptr<Growth> growth) override;
  Row row(int layer, int pos) override;
  void tiles(int layer, int end, std::vector<Tile>* out) const override;
  void commit(int length) override { length_ = length; }
  int coverage() const override { return length_; }
  int oldest(int layer) const override;
  size_t bytes() const override { return memory_.bytes(); }
  size_t peak_bytes() const override { return memory_.bytes(); }
  int capacity() const override { return capacity_; }
  int growths() const override { return growths_; }
  size_t copied_rows() const override { return 0; }

 protected:
  void cut(int length) override;

 private:
  // Where a layer's rows are: first those of the sinks, then `ring` rows, with position p at p % ring. Without a ring,
  // row p holds position p.
  struct Lane {
    int ring = 0, sinks = 0;
    size_t k = 0, v = 0;  // offsets in the memory

    /// Number of rows that a sequence of `positions` uses.
    int rows(int positions) const;
    /// Row at which the tile that begins at position `first` starts.
    int tile_row(int first) const { return ring == 0 ? first : sinks + first % ring; }
    int row_of(int pos) const { return pos < sinks ? pos : ring == 0 ? pos : sinks + pos % ring; }
  };
  struct Extent : Growth {
    int end = 0;
  };

  ReservedLayout(const LayoutInfo& info, const CacheShape& shape) : Layout(shape), info_(info) {}
  static Lane lane_of(const CacheShape& shape, int layer, bool rings);
  const Lane& lane(int layer) const { return lanes_[static_cast<size_t>(layer)]; }
  Tile tile_at(const Lane& lane, int first, int row, uint64_t live) const;
  // oldest(layer) as it will be when `written` positions have been written.
  int oldest(int layer, int written) const;

  const LayoutInfo& info_;
  std::vector<Lane> lanes_;
  Buffer memory_;
  int length_ = 0, capacity_ = 0, growths_ = 0;
  std::atomic<int> written_{0};  // end of the positions written since the last truncation, by uncommitted passes too
};

}  // namespace kvasir
