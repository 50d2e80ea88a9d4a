// The operations that a family's layer is built from, named as in the papers. Each takes rows of activations and
// returns rows in the pass's workspace, valid until the layer ends. Each splits its work over the threads and sums in
// the order that docs/numerics.md fixes.
#pragma once

#include <array>
#include <initializer_list>

#include "arch/forward_pass.h"

namespace kvasir {

struct Linear {
  Matrix w;
  const float* bias = nullptr;
};

/// RMSNorm: x / sqrt(mean(x^2) + eps) * gain (arXiv:1910.07467). x, y [tokens, cols], gain [cols].
Rows rms_norm(Pass& pass, const Rows& x, const float* gain);
/// RMSNorm in place of each of the `parts` equal parts of every row, for example its heads. gain [x.cols / parts].
void norm_parts(Pass& pass, const Rows& x, int parts, const float* gain);
/// LayerNorm: (x - mean) / sqrt(var + eps) * gain + bias (arXiv:1607.06450). A null bias counts as 0.
Rows layer_norm(Pass& pass, const Rows& x, const float* gain, const float* bias);

/// y = W x + b. x [tokens, W.cols], y [tokens, W.rows].
Rows linear(Pass& pass, const Rows& x, const Linear& f);
void linear_into(Pass& pass, const Rows& x, std::span<const Linear> fs, std::span<Rows> ys);
/// Several products of the same x, computed in one parallel section.
template <size_t N>
std::array<Rows, N> linears(Pass& pass, const Rows& x, const std::array<Linear, N>& fs) {
  std::array<Rows, N> ys;
  linear_into(pass, x, fs, ys);
  return ys;
}

/// Rotates every head of q and k by its token's position (arXiv:2104.09864), in place, with the layer's kind of RoPE.
/// Then multiplies q by its temperature, if the model has one. The keys of a window's sinks (arXiv:2309.17453) stay
/// unrotated: their position changes with the window, so attend() rotates them.
void rope(Pass& pass, int layer, const Rows& q, const Rows& k);

/// Stores k and v at their positions in each sequence's cache, then attends. Row t of the result is softmax(q k^T /
/// sqrt(head_dim)) v over the positions of its own sequence up to position(t) that the layer's window shows
/// (arXiv:1706.03762, with GQA as in arXiv:2305.13245), scaled and capped as the config asks. `null_scores` [heads]
/// holds one extra score per head that takes part in the softmax and has no v; null if the model has none. If the
/// cache's KV type asks for it, heads of q, k and v are rotated first, in place, and the result is rotated back
/// (math/hadamard.h).
Rows attend(Pass& pass, int layer, const Rows& q, const Rows& k, const Rows& v, const float* null_scores = nullptr);
/// Floats of workspace that attend() takes besides its result.
int64_t attend_state_floats(const ModelConfig& c, std::span<const BatchItem> items, int threads);

/// f(gate) * up, written over gate (arXiv:2002.05202); f is the config's activation.
Rows glu(Pass& pass, const Rows& gate, const Rows& up);
/// f(x), in place.
Rows activate(Pass& pass, Activation f, const Rows& x);
/// x += residual_scale * y.
void add(Pass& pass, const Rows& x, const Rows& y);
/// x *= s.
void scale(Pass& pass, const Rows& x, float s);

/// Row t of x = row t of the matrix, decoded.
void embed_rows(const Matrix& rows, const Rows& x);
/// Row t of x += row t of the matrix, decoded.
void add_rows(Pass& pass, const Matrix& rows, const Rows& x);

}  // namespace kvasir
