// One sequence of a KVCache as a Layout, for callers that own the store.
#pragma once

#include <memory>

#include <kvasir/kv_cache.h>

#include "cache/layout.h"

namespace kvasir {

/// A view of sequence `slot` of `store`. Requires: `store` outlives the view, `shape` describes it, slot <
/// store.batch(). The sequences of one store advance together: grow the store before a pass, then commit the same
/// length in every view.
std::unique_ptr<Layout> make_grow_view(KVCache& store, const CacheShape& shape, int slot);

}  // namespace kvasir
