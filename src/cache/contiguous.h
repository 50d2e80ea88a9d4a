// A layout that keeps each layer's rows side by side in one slab. dense, concat and none use it; they differ only in
// how much they allocate. (grow uses KVCache, which has the same shape and its own growth policy.)
#pragma once

#include <memory>

#include "cache/kv_slab.h"
#include "cache/layout.h"

namespace kvasir {

class ContiguousLayout : public Layout {
 public:
  /// `all_at_once`: allocates all of max_ctx now; otherwise each step allocates exactly what it needs.
  static Result<std::unique_ptr<Layout>> make(const LayoutInfo& info, const CacheShape& shape, bool all_at_once);

  const LayoutInfo& info() const override { return info_; }
  Result<std::unique_ptr<Growth>> prepare(int end) const override;
  void apply(std::unique_ptr<Growth> growth) override;
  Row row(int layer, int pos) override { return {slab_.k_at(layer, pos), slab_.v_at(layer, pos)}; }
  void tiles(int layer, int end, std::vector<Tile>* out) const override;
  void commit(int length) override { length_ = length; }
  void end_step() override;
  int coverage() const override { return length_; }
  size_t bytes() const override { return slab_.bytes(); }
  size_t peak_bytes() const override { return peak_bytes_; }
  int capacity() const override { return slab_.cap; }
  int growths() const override { return growths_; }
  size_t copied_rows() const override { return copied_rows_; }

 protected:
  void cut(int length) override { length_ = length; }

 private:
  struct NewSlab : Growth {
    Slab slab;
  };

  ContiguousLayout(const LayoutInfo& info, const CacheShape& shape) : Layout(shape), info_(info) {}
  Result<std::unique_ptr<Growth>> prepare_capacity(int cap) const;

  const LayoutInfo& info_;
  Slab slab_;
  int length_ = 0, growths_ = 0;
  size_t peak_bytes_ = 0, copied_rows_ = 0;
};

}  // namespace kvasir
