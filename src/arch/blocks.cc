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

void rope(Pass& pass, const Rows& x, int heads) {
  const ModelConfig& c = pass.config();
  const auto rotate = pass.kernels().rope;
  pass.compute().for_rows(x.n, [&](int t) {
    rotate({x.row(t), heads, c.head_dim, pass.cos(t), pass.sin(t), c.rope->interleaved});
  });
}

namespace {

// One call of the attention kernel: a KV head and up to kMaxAttendTokens consecutive tokens of one sequence.
struct AttendUnit {
  size_t item;
  int kv_head, first_token, tokens;
};

std::vector<AttendUnit> attend_units(const Pass& pass) {
  constexpr int kTokens = kMaxAttendTokens / 2;  // enough to reuse a tile's rows, small enough to share evenly
  std::vector<AttendUnit> units;
  for (size_t i = 0; i < pass.items().size(); ++i) {
    const int n = static_cast<int>(pass.items()[i].tokens.size());
    for (int t = 0; t < n; t += kTokens)
      for (int h = 0; h < pass.config().kv_heads; ++h) units.push_back({i, h, t, std::min(kTokens, n - t)});
  }
  return units;
}

DecodeFn decoder(const Codec* codec) { return codec == &codec_f32() ? nullptr : codec->decode; }

AttendArgs attend_args(const Pass& pass, const AttendUnit& unit, std::span<const Tile> tiles, const Rows& q,
                       const Rows& out) {
  const ModelConfig& c = pass.config();
  const BatchItem& item = pass.items()[unit.item];
  const CacheShape& shape = item.cache->shape();
  const int row = pass.first_row(unit.item) + unit.first_token;
  const int64_t head = int64_t{unit.kv_head} * c.group() * c.head_dim;
  AttendArgs args;
  args.tiles = tiles.data();
  args.tile_count = static_cast<int>(tiles.size());
  args.head_dim = c.head_dim;
  args.group = c.group();
  args.tokens = unit.tokens;
  args.first_pos = item.first + unit.first_token;
  args.scale = c.attention_scale();
  args.k_offset = static_cast<size_t>(unit.kv_head) * shape.k->row_bytes(c.head_dim);
  args.v_offset = static_cast<size_t>(unit.kv_head) * shape.v->row_bytes(c.head_dim);
  args.decode_k = decoder(shape.k);
  args.decode_v = decoder(shape.v);
  args.q = q.row(row) + head;
  args.out = out.row(row) + head;
  args.q_stride = q.stride;
  args.out_stride = out.stride;
  return args;
}

void store_kv(Pass& pass, int layer, const Rows& k, const Rows& v) {
  pass.compute().for_rows(k.n,
                          [&](int t) { pass.item_of(t).cache->write(layer, pass.position(t), k.row(t), v.row(t)); });
}

}  // namespace

Rows attend(Pass& pass, int layer, const Rows& q, const Rows& k, const Rows& v) {
  store_kv(pass, layer, k, v);
  std::vector<std::vector<Tile>> tiles(pass.items().size());
  for (size_t i = 0; i < tiles.size(); ++i) {
    const BatchItem& item = pass.items()[i];
    item.cache->tiles(layer, item.first + static_cast<int>(item.tokens.size()), &tiles[i]);
  }
  const Rows out = pass.workspace().take(q.n, q.cols);
  const std::vector<AttendUnit> units = attend_units(pass);
  pass.compute().pool().run(static_cast<int>(units.size()), [&](int u, int worker) {
    const AttendUnit& unit = units[static_cast<size_t>(u)];
    AttendArgs args = attend_args(pass, unit, tiles[unit.item], q, out);
    args.scratch = pass.compute().scratch(worker);
    pass.kernels().attend(args);
  });
  return out;
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

void embed_rows(Pass& pass, const Matrix& table, const Rows& x) {
  for (int t = 0; t < x.n; ++t)
    table.codec->decode(table.data + static_cast<size_t>(pass.id(t)) * table.row_bytes(), x.row(t), x.cols);
}

void add_position_rows(Pass& pass, const Matrix& table, const Rows& x) {
  std::vector<float> row(static_cast<size_t>(x.cols));
  for (int t = 0; t < x.n; ++t) {
    table.codec->decode(table.data + static_cast<size_t>(pass.position(t)) * table.row_bytes(), row.data(), x.cols);
    pass.kernels().add(x.row(t), row.data(), x.cols);
  }
}

}  // namespace kvasir
