// Blocks over the kernels of this CPU.
#include "arch/layer_ops.h"

#include <algorithm>
#include <vector>

namespace kvasir {

Rows rms_norm(Pass& pass, const Rows& x, const float* gain) {
  const Rows y = pass.workspace().take(x.n, x.cols);
  const auto norm = pass.kernels().rms_norm;
  pass.compute().for_rows(x.n, [&](int t) { norm(x.row(t), gain, pass.config().norm_eps, y.row(t), x.cols); });
  return y;
}

void norm_parts(Pass& pass, const Rows& x, int parts, const float* gain) {
  const int64_t d = x.cols / parts;
  const auto norm = pass.kernels().rms_norm;
  pass.compute().for_rows(x.n, [&](int t) {
    for (int i = 0; i < parts; ++i) norm(x.row(t) + i * d, gain, pass.config().norm_eps, x.row(t) + i * d, d);
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

void rope(Pass& pass, int layer, const Rows& q, const Rows& k) {
  const ModelConfig& c = pass.config();
  const bool rotates = c.rope_kind(layer) >= 0, tempers = c.q_temperature_beta != 0;
  if (!rotates && !tempers) return;
  pass.compute().for_rows(q.n, [&](int t) {
    if (rotates) pass.rotate(layer, t, q.row(t), c.heads);
    if (tempers) pass.kernels().scale(q.row(t), c.q_temperature(pass.position(t)), q.cols);
    if (rotates && pass.position(t) >= pass.item_of(t).cache->shape().sinks)
      pass.rotate(layer, t, k.row(t), c.kv_heads);
  });
}

Rows glu(Pass& pass, const Rows& gate, const Rows& up) {
  const Activation f = pass.config().activation;
  pass.compute().for_rows(gate.n, [&](int t) { pass.kernels().activate(f, gate.row(t), up.row(t), gate.cols); });
  return gate;
}

Rows activate(Pass& pass, Activation f, const Rows& x) {
  pass.compute().for_rows(x.n, [&](int t) { pass.kernels().activate(f, x.row(t), nullptr, x.cols); });
  return x;
}

void add(Pass& pass, const Rows& x, const Rows& y) {
  const float s = pass.config().residual_scale;
  pass.compute().for_rows(x.n, [&](int t) {
    if (s != 1)
      pass.kernels().add_scaled(x.row(t), s, y.row(t), x.cols);
    else
      pass.kernels().add(x.row(t), y.row(t), x.cols);
  });
}

void scale(Pass& pass, const Rows& x, float s) {
  if (s == 1) return;
  pass.compute().for_rows(x.n, [&](int t) { pass.kernels().scale(x.row(t), s, x.cols); });
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
