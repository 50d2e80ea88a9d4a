// What fits a budget of memory: the same arithmetic for `plan`, which tells, and for a run, which keeps to it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "arch/footprint.h"
#include "cache/layout.h"
#include "format/weight_source.h"

namespace kvasir {

/// A sequence's share of the activations, whatever its cache.
size_t session_activation_bytes(const ModelConfig& config, const CacheShape& shape);
/// The most that a sequence holds on its way to all of shape.max_ctx: KV, old and new while it grows, and its share of
/// the activations.
size_t session_bytes(const ModelConfig& config, const LayoutInfo& layout, const CacheShape& shape);
/// The most positions of one sequence that fit `bytes`, with its KV in `kv_bytes`, at most shape.max_ctx.
int positions_that_fit(const ModelConfig& config, const LayoutInfo& layout, CacheShape shape, size_t bytes,
                       size_t kv_bytes = SIZE_MAX);
/// `asked` tokens a pass, or fewer so that activations take an eighth of the budget at most; 0 is no budget.
int budgeted_chunk(const Footprint& footprint, int asked, int threads, size_t budget);
/// Memory that weights of so many bytes take, the largest layer's among them: buffers on huge pages are whole ones, and
/// a streamed layer may have other tensors between its own. The pages of mapped ones count.
size_t bytes_in_memory(WeightsMode mode, size_t weights, size_t largest_layer);
/// Resident if that leaves a third of `left` to everything else, else streamed.
WeightsMode budgeted_mode(size_t resident_bytes, size_t left);

}  // namespace kvasir
