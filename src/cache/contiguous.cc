// Planning, growing and clearing one slab.
#include "cache/contiguous.h"

#include <algorithm>

namespace kvasir {

Result<std::unique_ptr<Layout>> ContiguousLayout::make(const LayoutInfo& info, const CacheShape& shape,
                                                       bool all_at_once) {
  std::unique_ptr<ContiguousLayout> layout(new ContiguousLayout(info, shape));
  if (all_at_once) {
    KVASIR_TRY(auto first, layout->prepare_capacity(shape.max_ctx));
    layout->apply(std::move(first));
    layout->growths_ = 0;
    layout->slab_.k.touch();
    layout->slab_.v.touch();
  }
  return layout;
}

Result<std::unique_ptr<Layout::Growth>> ContiguousLayout::prepare_capacity(int cap) const {
  auto grown = std::make_unique<NewSlab>();
  KVASIR_TRY(grown->slab, Slab::allocate(shape().layers, cap, shape().k_row_bytes(), shape().v_row_bytes()));
  return grown;
}

Result<std::unique_ptr<Layout::Growth>> ContiguousLayout::prepare(int end) const {
  if (end > shape().max_ctx) return past_context(end, shape().max_ctx);
  if (end <= slab_.cap) return std::unique_ptr<Growth>();
  return prepare_capacity(end);
}

void ContiguousLayout::apply(std::unique_ptr<Growth> growth) {
  if (growth == nullptr) return;
  Slab& slab = static_cast<NewSlab&>(*growth).slab;
  peak_bytes_ = std::max(peak_bytes_, slab_.bytes() + slab.bytes());
  copied_rows_ += slab.copy_from(slab_, length_);
  ++growths_;
  slab_ = std::move(slab);
}

void ContiguousLayout::tiles(int layer, int end, std::vector<Tile>* out) const {
  append_contiguous_tiles(slab_.k_at(layer, 0), slab_.k_row, slab_.v_at(layer, 0), slab_.v_row, end, out);
}

void ContiguousLayout::end_step() {
  if (!info_.recomputes) return;
  length_ = 0;
  slab_ = Slab{};
}

}  // namespace kvasir
