// One sequence of a KVCache as a Layout, for callers that hold the store themselves.
#pragma once

#include <memory>

#include <kvasir/kv_cache.h>

#include "cache/layout.h"

namespace kvasir {

/// Requires: `store` outlives the view, `shape` describes it, slot < store.batch(). The sequences of one store advance
/// together: grow the store before a pass, then every view commits the same length.
std::unique_ptr<Layout> make_grow_view(KVCache& store, const CacheShape& shape, int slot);

}  // namespace kvasir
