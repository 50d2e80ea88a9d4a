// The blocks that layers are written with, named as in the papers. Each takes rows of activations and returns rows of
// the pass's workspace (good until the layer ends), splits its work over the threads, and sums in the order of
// docs/numerics.md.
#pragma once

#include <array>
#include <initializer_list>

#include "arch/pass.h"

namespace kvasir {

struct Linear {
  Matrix w;
  const float* bias = nullptr;
};

/// x / sqrt(mean(x^2) + eps) * gain (arXiv:1910.07467).
Rows rms_norm(Pass& pass, const Rows& x, const float* gain);
/// The same for each of so many equal parts of every row by itself, in place. gain [x.cols / parts].
void norm_parts(Pass& pass, const Rows& x, int parts, const float* gain);
/// (x - mean) / sqrt(var + eps) * gain + bias (arXiv:1607.06450); a null bias is 0.
Rows layer_norm(Pass& pass, const Rows& x, const float* gain, const float* bias);

/// W x + b.
Rows linear(Pass& pass, const Rows& x, const Linear& f);
void linear_into(Pass& pass, const Rows& x, std::span<const Linear> fs, std::span<Rows> ys);
/// Several products of the same x in one fork.
template <size_t N>
std::array<Rows, N> linears(Pass& pass, const Rows& x, const std::array<Linear, N>& fs) {
  std::array<Rows, N> ys;
  linear_into(pass, x, fs, ys);
  return ys;
}

/// Rotates every head of every row of queries and keys by its position (arXiv:2104.09864), in place, as the layer asks
/// for; then queries take their temperature, where the model has one. Keys whose place moves, the sinks of a window
/// (arXiv:2309.17453), are left for attend() to rotate.
void rope(Pass& pass, int layer, const Rows& q, const Rows& k);

/// Stores k and v at their positions in each sequence's cache, then attends: row t of the result is
/// softmax(q k^T / sqrt(head_dim)) v over the positions of its own sequence up to position(t) that the layer's window
/// leaves (arXiv:1706.03762, with GQA as in arXiv:2305.13245), scaled and capped as the config says. `null_scores`, of
/// each head, take part in the softmax and have no v; null: there are none. Where the cache's type asks for it, heads
/// of q, k and v are rotated first, in place, and the result is rotated back (math/hadamard.h).
Rows attend(Pass& pass, int layer, const Rows& q, const Rows& k, const Rows& v, const float* null_scores = nullptr);
/// What attend() takes of the workspace besides its result.
int64_t attend_state_floats(const ModelConfig& c, std::span<const BatchItem> items, int threads);

/// f(gate) * up, in place of gate (arXiv:2002.05202); f is the config's activation.
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
