// Blocks over the kernels of this CPU.
#include "arch/blocks.h"

#include <algorithm>
#include <vector>

namespace kvasir {

Rows rms_norm(Pass& pass, const Rows& x, const float* gain) {
  const Rows y = pass.workspace().take(x.n, x.cols);
  const auto norm = pass.kernels().rms_norm;
  pass.compute().for_rows(x.n, [&](int t) { norm(x.row(t), gain, pass.config().norm_eps, y.row(t), x.cols); });
  return y;
}

void norm_heads(Pass& pass, const Rows& x, int heads, const float* gain) {
  const int64_t d = pass.config().head_dim;
  const auto norm = pass.kernels().rms_norm;
  pass.compute().for_rows(x.n, [&](int t) {
    for (int h = 0; h < heads; ++h) norm(x.row(t) + h * d, gain, pass.config().norm_eps, x.row(t) + h * d, d);
  });
}

Rows layer_norm(Pass& pass, const Rows& x, const float* gain, const float* bias) {
  const Rows y = pass.workspace().take(x.n, x.cols);
  const auto norm = pass.kernels().layer_norm;
  pass.compute().for_rows(x.n, [&](int t) { norm(x.row(t), gain, bias, pass.config().norm_eps, y.row(t), x.cols); });
  return y;
}

Rows linear(Pass& pass, const Rows& x, const Linear& f) { return linears<1>(pass, x, {f})[0]; }

void linear_into(Pass& pass, const Rows& x, std::span<const Linear> fs, std::span<Rows> ys) {
  std::vector<MatmulJob> jobs;
  for (size_t i = 0; i < fs.size(); ++i) {
    ys[i] = pass.workspace().take(x.n, fs[i].w.rows);
    jobs.push_back({fs[i].w, fs[i].bias, ys[i]});
  }
  pass.compute().matmul(x, jobs);
}

void rope(Pass& pass, const Rows& q, const Rows& k) {
  const ModelConfig& c = pass.config();
  const auto rotate = pass.kernels().rope;
  pass.compute().for_rows(q.n, [&](int t) {
    rotate({q.row(t), c.heads, c.head_dim, pass.cos(t), pass.sin(t), c.rope->interleaved});
    if (pass.position(t) >= pass.item_of(t).cache->shape().sinks)
      rotate({k.row(t), c.kv_heads, c.head_dim, pass.cos(t), pass.sin(t), c.rope->interleaved});
  });
}

Rows swiglu(Pass& pass, const Rows& gate, const Rows& up) {
  pass.compute().for_rows(gate.n, [&](int t) { pass.kernels().silu_mul(gate.row(t), up.row(t), gate.cols); });
  return gate;
}

Rows gelu(Pass& pass, const Rows& x) {
  pass.compute().for_rows(x.n, [&](int t) { pass.kernels().gelu(x.row(t), x.cols); });
  return x;
}

void add(Pass& pass, const Rows& x, const Rows& y) {
  pass.compute().for_rows(x.n, [&](int t) { pass.kernels().add(x.row(t), y.row(t), x.cols); });
}

void embed_rows(const Matrix& rows, const Rows& x) {
  for (int t = 0; t < x.n; ++t)
    rows.codec->decode(rows.data + static_cast<size_t>(t) * rows.row_bytes(), x.row(t), x.cols);
}

void add_rows(Pass& pass, const Matrix& rows, const Rows& x) {
  std::vector<float> row(static_cast<size_t>(x.cols));
  for (int t = 0; t < x.n; ++t) {
    rows.codec->decode(rows.data + static_cast<size_t>(t) * rows.row_bytes(), row.data(), x.cols);
    pass.kernels().add(x.row(t), row.data(), x.cols);
  }
}

}  // namespace kvasir
