// none: no cache. Rows live for one step and are recomputed in the next. The Law is checked against this layout.
#include "cache/contiguous.h"

namespace kvasir {

extern const LayoutInfo layout_none;
const LayoutInfo layout_none{
    .name = "none",
    .summary = "forgets everything at the end of each step and recomputes",
    .trade = "holds nothing between steps; each token costs as much as the whole text before it",
    .recomputes = true,
    .bytes = [](const CacheShape&, int) { return size_t{0}; },
    .peak_bytes = [](const CacheShape& s, int positions) { return bytes_of_positions(s, positions); },
    .create = [](const CacheShape& shape,
                 std::shared_ptr<BlockPool>) { return ContiguousLayout::make(layout_none, shape, false); },
};

}  // namespace kvasir
