// Rotation of heads by a Hadamard matrix, the same bits on every CPU. When to use it is the KV type's.
#pragma once

#include <cstdint>

namespace kvasir {

/// Multiplies each run of b channels of a head by the normalised Hadamard matrix of order b, the largest power of two
/// that divides head_dim, in place. Its own inverse but for rounding. Butterflies with strides 1, 2, 4, ... and then
/// one factor of 1 / sqrt(b), rounded once: docs/numerics.md.
void rotate_heads(float* row, int heads, int head_dim);

}  // namespace kvasir
