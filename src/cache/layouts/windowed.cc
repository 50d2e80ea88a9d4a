// windowed: a layer with a window keeps the sinks and a ring that holds the window and one pass; other layers keep
// every position.
#include "cache/reserved.h"

namespace kvasir {

extern const LayoutInfo layout_windowed;

namespace {

size_t windowed_bytes(const CacheShape& shape, int positions) {
  return ReservedLayout::bytes_for(shape, positions, layout_windowed.drops_old);
}

}  // namespace

const LayoutInfo layout_windowed{
    .name = "windowed",
    .summary = "what the window of each layer sees, in rings, and the sinks",
    .trade = "a long text costs the memory of its window; truncates by at most one prefill chunk",
    .drops_old = true,
    .bytes = windowed_bytes,
    .peak_bytes = windowed_bytes,
    .create = [](const CacheShape& shape,
                 std::shared_ptr<BlockPool>) { return ReservedLayout::make(layout_windowed, shape); },
};

}  // namespace kvasir
