// reserve: address space for all of max_ctx, whose pages are taken as positions arrive. Grows without copying.
#include "cache/reserved.h"

namespace kvasir {

extern const LayoutInfo layout_reserve;

namespace {

size_t reserve_bytes(const CacheShape& shape, int positions) {
  return ReservedLayout::bytes_for(shape, positions, layout_reserve.drops_old);
}

}  // namespace

const LayoutInfo layout_reserve{
    .name = "reserve",
    .summary = "address space for the context, pages as positions come",
    .trade = "never copies, so its peak is its final size; takes whole pages in every layer",
    .bytes = reserve_bytes,
    .peak_bytes = reserve_bytes,
    .create = [](const CacheShape& shape,
                 std::shared_ptr<BlockPool>) { return ReservedLayout::make(layout_reserve, shape); },
};

}  // namespace kvasir
