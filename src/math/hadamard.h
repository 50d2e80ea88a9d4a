// Rotates heads by a Hadamard matrix, with the same bits on every CPU. The KV type decides when it is used.
#pragma once

#include <cstdint>

namespace kvasir {

/// Multiplies each run of b channels of a head, in place, by the normalised Hadamard matrix of order b, the largest
/// power of two that divides head_dim. It is its own inverse except for rounding. Computed as butterflies with strides
/// 1, 2, 4, ... and one factor of 1 / sqrt(b), rounded once: docs/numerics.md.
void rotate_heads(float* row, int heads, int head_dim);

}  // namespace kvasir
