// How much memory a pass takes, from the config alone. Weights and caches are elsewhere.
#pragma once

#include <cstddef>
#include <cstdint>

#include "arch/config.h"

namespace kvasir {

/// Floats of the workspace for a pass of so many tokens: the widest layer's temporaries, the residual stream, the RoPE
/// tables and the normed rows of the head. Attention that splits a history takes more (attend_state_floats).
size_t workspace_floats(const ModelConfig& config, int tokens);
/// Floats of a thread's scratch: a panel of weights, or a tile of attention.
int64_t scratch_floats(const ModelConfig& config);
/// Bytes of all that a pass of at most so many tokens computes in, but for its logits.
size_t activation_bytes(const ModelConfig& config, int tokens, int threads);
/// Bytes that each sequence adds to that: its row of logits, three times while it is handed over, and the states of a
/// history that is split over threads, of which a token sees `seen` positions.
size_t sequence_bytes(const ModelConfig& config, int seen);

}  // namespace kvasir
