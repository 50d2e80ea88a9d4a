// From a session's options to the shape of its cache, for sessions and for plan().
#pragma once

#include <kvasir/engine.h>

#include "arch/config.h"
#include "arch/family.h"

namespace kvasir {

/// `lookahead`: upper bound of tokens in a pass. Errors: an unknown KV type, a context above the model's limit, a
/// window that this model cannot have.
Result<CacheShape> session_shape(const Family& family, const ModelConfig& config, const SessionOptions& options,
                                 const LayoutInfo& layout, int lookahead);

}  // namespace kvasir
