// concat: exactly the positions in use, reallocated at each step, so copies grow quadratically. The textbook's layout
// A.
#include "cache/contiguous.h"

namespace kvasir {

extern const LayoutInfo layout_concat;
const LayoutInfo layout_concat{
    .name = "concat",
    .summary = "exactly what is in use, reallocated at each step",
    .trade = "wastes no byte between steps; copies the whole history at each one, n(n-1)/2 rows in all",
    .bytes = [](const CacheShape& s, int positions) { return bytes_of_positions(s, positions); },
    .peak_bytes = [](const CacheShape& s,
                     int positions) { return bytes_of_positions(s, 2 * int64_t{positions} - (positions > 0 ? 1 : 0)); },
    .create = [](const CacheShape& shape,
                 std::shared_ptr<BlockPool>) { return ContiguousLayout::make(layout_concat, shape, false); },
};

}  // namespace kvasir
