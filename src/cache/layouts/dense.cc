// dense: all of max_ctx, allocated and touched when the cache is created. The textbook's layout B.
#include "cache/contiguous.h"

namespace kvasir {

extern const LayoutInfo layout_dense;
const LayoutInfo layout_dense{
    .name = "dense",
    .summary = "the whole context at once",
    .trade = "never copies and never fails later; pays for the longest chat before the first token",
    .bytes = [](const CacheShape& s, int) { return bytes_of_positions(s, s.max_ctx); },
    .peak_bytes = [](const CacheShape& s, int) { return bytes_of_positions(s, s.max_ctx); },
    .create = [](const CacheShape& shape,
                 std::shared_ptr<BlockPool>) { return ContiguousLayout::make(layout_dense, shape, true); },
};

}  // namespace kvasir
