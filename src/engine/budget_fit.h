// Fits a run into a memory budget, by one arithmetic for plan(), which predicts, and for a run, which obeys it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "arch/activation_memory.h"
#include "cache/layout.h"
#include "format/weight_source.h"

namespace kvasir {

/// Bytes of activations that one sequence needs, whatever its cache.
size_t session_activation_bytes(const ModelConfig& config, const CacheShape& shape);
/// Peak bytes of a sequence that grows to shape.max_ctx: KV, old and new while it grows, and its activations.
size_t session_bytes(const ModelConfig& config, const LayoutInfo& layout, const CacheShape& shape);
/// Largest number of positions of one sequence that fits into `bytes`, with its KV in `kv_bytes`; at most
/// shape.max_ctx.
int positions_that_fit(const ModelConfig& config, const LayoutInfo& layout, CacheShape shape, size_t bytes,
                       size_t kv_bytes = SIZE_MAX);
/// Tokens a pass: `asked`, or fewer, so that activations take at most an eighth of `budget` bytes (0: no budget), and
/// at most half of the `left` bytes, so that a larger budget never leaves less than a smaller one to a short sequence.
int budgeted_chunk(const Footprint& footprint, int asked, int threads, size_t budget, size_t left);
/// Bytes of memory that weights need. Buffers are rounded up to pages; a streamed layer or expert may include other
/// tensors that lie between its own; pages of mapped weights count.
size_t bytes_in_memory(WeightsMode mode, const WeightSizes& sizes);
/// Resident if that leaves a third of `left` to everything else, otherwise streamed.
WeightsMode budgeted_mode(size_t resident_bytes, size_t left);

}  // namespace kvasir
