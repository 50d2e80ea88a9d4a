// dense: all of max_ctx at once, written at construction. The textbook's layout B.
#include "cache/contiguous.h"

namespace kvasir {

extern const LayoutInfo layout_dense;
const LayoutInfo layout_dense{
    .name = "dense",
    .summary = "all of --ctx at once",
    .trade = "never copies and never fails later; pays for the longest chat before the first token",
    .keeps = true,
    .capacity = [](int, int max_ctx) { return max_ctx; },
    .peak_capacity = [](int, int max_ctx) { return int64_t{max_ctx}; },
    .make = [](const CacheShape& shape) { return ContiguousLayout::make(layout_dense, shape, true); },
};

}  // namespace kvasir
