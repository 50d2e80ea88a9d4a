// The scalar reference: every kernel as docs/numerics.md defines it, one element at a time, slow on purpose. The SIMD
// tables must give the same bits. Shares no code with them except the polynomials, which are the definition on every
// CPU.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "dtype/lanes.h"
#include "math/functions.h"
#include "math/kernels.h"
#include "math/simd/vec16_scalar.h"

namespace kvasir {
namespace {

using scalar::F1;

float exp_scalar(float x) { return exp_v(F1{x}).v; }
float soft_cap_scalar(float x, float cap) { return cap * tanh_v(F1{x / cap}).v; }

// Decodes row r of the weights to floats, whatever the storage type.
void widen_row(const MatmulArgs& a, int64_t r, float* row) {
  if (!a.conv1d) return a.decode(a.w + static_cast<size_t>(r) * a.row_bytes, row, a.cols);
  const int64_t whole = (a.rows + a.block_elems - 1) / a.block_elems * a.block_elems;
  std::vector<float> stored(static_cast<size_t>(whole));
  for (int64_t k = 0; k < a.cols; ++k) {
    a.decode(a.w + static_cast<size_t>(k) * a.row_bytes, stored.data(), whole);
    row[k] = stored[static_cast<size_t>(r)];
  }
}

void matmul_one_row(const MatmulArgs& a, int64_t r, const float* row) {
  for (int t = 0; t < a.tokens; ++t) {
    const float* x = a.x + t * a.x_stride;
    const float dot = dot_lanes(
        a.cols, [&](int64_t i) { return row[i]; }, [&](int64_t i) { return x[i]; });
    a.y[t * a.y_stride + r] = a.bias != nullptr ? dot + a.bias[r] : dot;
  }
}

void matmul(const MatmulArgs& a) {
  for (int64_t r = a.row_begin; r < a.row_end; ++r) {
    widen_row(a, r, a.panel);
    matmul_one_row(a, r, a.panel);
  }
}

void matmul_integer(const MatmulArgs& a) {
  const int64_t acts = a.cols / kActElems;
  for (int64_t r = a.row_begin; r < a.row_end; ++r)
    for (int t = 0; t < a.tokens; ++t) {
      const auto* x = reinterpret_cast<const std::byte*>(a.act + t * acts);
      const float dot = a.dot(a.w + static_cast<size_t>(r) * a.row_bytes, x, a.cols);
      a.y[t * a.y_stride + r] = a.bias != nullptr ? dot + a.bias[r] : dot;
    }
}

void arrange(Arrangement, const ActBlock*, int64_t, std::byte*) {}  // its products read the blocks themselves

struct TileState {
  float m = 0, l = 0;
  std::vector<float> o;
};

std::vector<float> decode_row(const std::byte* row, DecodeFn decode, int head_dim) {
  std::vector<float> out(static_cast<size_t>(head_dim));
  decode(row, out.data(), head_dim);
  return out;
}

std::vector<float> key_row(const AttendArgs& a, const Tile& tile, int i) {
  if (a.first_k != nullptr && tile.first == 0) return {a.first_k + i * a.head_dim, a.first_k + (i + 1) * a.head_dim};
  return decode_row(tile.k + static_cast<size_t>(i) * tile.k_stride + a.k_offset, a.decode_k, a.head_dim);
}

std::vector<float> value_row(const AttendArgs& a, const Tile& tile, int i) {
  if (a.first_v != nullptr && tile.first == 0) return {a.first_v + i * a.head_dim, a.first_v + (i + 1) * a.head_dim};
  return decode_row(tile.v + static_cast<size_t>(i) * tile.v_stride + a.v_offset, a.decode_v, a.head_dim);
}

uint64_t seen_by(const AttendArgs& a, const Tile& tile, int t) {
  const int pos = a.rows != nullptr ? a.rows[t].pos : a.first_pos + t;
  return tile.live & seen_rows(tile.first, pos, pos, a.window, a.sinks);
}

// Attends to one tile alone, for one query.
TileState attend_tile(const AttendArgs& a, const Tile& tile, uint64_t live, const float* q) {
  float scores[kTilePositions];
  TileState state;
  state.m = -INFINITY;
  for (int i = 0; i < kTilePositions; ++i) {
    if ((live >> i & 1) == 0) continue;
    const auto k = key_row(a, tile, i);
    const float dot = dot_lanes(
        a.head_dim, [&](int64_t d) { return q[d]; }, [&](int64_t d) { return k[static_cast<size_t>(d)]; });
    scores[i] = dot * a.scale;
    if (a.cap > 0) scores[i] = soft_cap_scalar(scores[i], a.cap);
    state.m = scores[i] > state.m ? scores[i] : state.m;
  }
  float lanes[kLanes] = {};
  state.o.assign(static_cast<size_t>(a.head_dim), 0.0f);
  for (int i = 0; i < kTilePositions; ++i) {
    if ((live >> i & 1) == 0) continue;
    const float p = exp_scalar(scores[i] - state.m);
    lanes[i % kLanes] += p;
    const auto v = value_row(a, tile, i);
    for (size_t d = 0; d < v.size(); ++d) state.o[d] = std::fma(p, v[d], state.o[d]);
  }
  state.l = fold_lanes(lanes);
  return state;
}

void merge(TileState& all, const TileState& tile) {
  const float m = tile.m > all.m ? tile.m : all.m;
  const float a = exp_scalar(all.m - m), b = exp_scalar(tile.m - m);
  all.l = std::fma(all.l, a, tile.l * b);
  for (size_t d = 0; d < all.o.size(); ++d) all.o[d] = std::fma(all.o[d], a, tile.o[d] * b);
  all.m = m;
}

void divide(const TileState& all, float* out) {
  for (size_t d = 0; d < all.o.size(); ++d) out[d] = all.o[d] / all.l;
}

const float* query(const AttendArgs& a, int t, int h) {
  return (a.rows != nullptr ? a.rows[t].q : a.q + t * a.q_stride) + static_cast<int64_t>(h) * a.head_dim;
}

float* output(const AttendArgs& a, int t, int h) {
  return (a.rows != nullptr ? a.rows[t].out : a.out + t * a.out_stride) + static_cast<int64_t>(h) * a.head_dim;
}

// The l of a state before its first tile.
constexpr float kNothing = 0.0f;

TileState read_state(const float* state, int head_dim) {
  return {state[0], state[1], {state + 2, state + 2 + head_dim}};
}
void write_state(const TileState& from, float* state) {
  state[0] = from.m;
  state[1] = from.l;
  std::copy(from.o.begin(), from.o.end(), state + 2);
}

TileState first_state(const AttendArgs& a, int h) {
  if (a.null_scores == nullptr) return {0.0f, kNothing, std::vector<float>(static_cast<size_t>(a.head_dim))};
  return {a.null_scores[h], 1.0f, std::vector<float>(static_cast<size_t>(a.head_dim))};
}

void attend_query(const AttendArgs& a, int t, int h) {
  float* state = a.states != nullptr ? a.states + int64_t{t * a.group + h} * (a.head_dim + 2) : nullptr;
  TileState all = a.begun ? read_state(state, a.head_dim) : first_state(a, h);
  for (int j = 0; j < a.tile_count; ++j) {
    const Tile& tile = a.tiles[j];
    const uint64_t live = seen_by(a, tile, t);
    if (live == 0) continue;
    TileState one = attend_tile(a, tile, live, query(a, t, h));
    if (all.l == kNothing)
      all = one;
    else
      merge(all, one);
  }
  if (state != nullptr) write_state(all, state);
  if (a.ends) divide(all, output(a, t, h));
}

void attend(const AttendArgs& a) {
  for (int t = 0; t < a.tokens; ++t)
    for (int h = 0; h < a.group; ++h) attend_query(a, t, h);
}

void attend_tile(const AttendArgs& a, float* states) {
  const Tile& tile = a.tiles[0];
  for (int h = 0; h < a.group; ++h)
    write_state(attend_tile(a, tile, seen_by(a, tile, 0), query(a, 0, h)), states + int64_t{h} * (a.head_dim + 2));
}

void merge_tiles(const MergeArgs& a) {
  const auto state = [&](int j, int n) {
    return read_state(a.states + (int64_t{j} * a.queries + n) * (a.head_dim + 2), a.head_dim);
  };
  for (int n = 0; n < a.queries; ++n) {
    TileState all = state(0, n);
    for (int j = 1; j < a.tile_count; ++j) merge(all, state(j, n));
    divide(all, a.out + int64_t{n} * a.head_dim);
  }
}

void rope(const RopeArgs& args) {
  const int half = args.channels / 2;
  for (int h = 0; h < args.heads; ++h)
    for (int i = 0; i < half; ++i) {
      float* head = args.row + static_cast<int64_t>(h) * args.head_dim;
      float& a = args.interleaved ? head[2 * i] : head[i];
      float& b = args.interleaved ? head[2 * i + 1] : head[half + i];
      const float x = a, y = b, c = args.cos[i], s = args.sin[i];
      a = std::fma(x, c, -(y * s));
      b = std::fma(y, c, x * s);
    }
}

float square_mean(const float* x, float center, int64_t n) {
  const auto centered = [&](int64_t i) { return x[i] - center; };
  return dot_lanes(n, centered, centered) / static_cast<float>(n);
}

void rms_norm(const float* x, const float* gain, float eps, float* y, int64_t n) {
  const float scale = 1.0f / std::sqrt(square_mean(x, 0.0f, n) + eps);
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * scale * gain[i];
}

void layer_norm(const float* x, const float* gain, const float* bias, float eps, float* y, int64_t n) {
  const float sum = dot_lanes(
      n, [&](int64_t i) { return x[i]; }, [](int64_t) { return 1.0f; });
  const float mean = sum / static_cast<float>(n);
  const float scale = 1.0f / std::sqrt(square_mean(x, mean, n) + eps);
  for (int64_t i = 0; i < n; ++i) y[i] = std::fma((x[i] - mean) * scale, gain[i], bias != nullptr ? bias[i] : 0.0f);
}

F1 activated(Activation f, F1 gate) {
  switch (f) {
    case Activation::silu:
      return silu_v(gate);
    case Activation::gelu_tanh:
      return gelu_tanh_v(gate);
    case Activation::gelu_erf:
      return gelu_erf_v(gate);
    case Activation::relu_squared:
      return relu_squared_v(gate);
    case Activation::sigmoid:
      return sigmoid_v(gate);
    case Activation::clamped_swiglu:
      break;  // requires an `up`
  }
  return gate;
}

void activate(Activation f, float* gate, const float* up, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    if (f == Activation::clamped_swiglu)
      gate[i] = clamped_swiglu_v(F1{gate[i]}, F1{up[i]}).v;
    else
      gate[i] = up != nullptr ? activated(f, F1{gate[i]}).v * up[i] : activated(f, F1{gate[i]}).v;
}

void add_scaled(float* x, float s, const float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] = std::fma(s, y[i], x[i]);
}

void scale(float* x, float s, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] = x[i] * s;
}

void soft_cap(float* x, float cap, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] = soft_cap_scalar(x[i], cap);
}

void softmax(float* x, int64_t n) {
  float most = x[0], lanes[kLanes] = {};
  for (int64_t i = 1; i < n; ++i) most = x[i] > most ? x[i] : most;
  for (int64_t i = 0; i < n; ++i) {
    x[i] = exp_scalar(x[i] - most);
    lanes[i % kLanes] += x[i];
  }
  const float sum = fold_lanes(lanes);
  for (int64_t i = 0; i < n; ++i) x[i] = x[i] / sum;
}

void add(float* x, const float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] = x[i] + y[i];
}

void weigh_logits(const WeighArgs& a) {
  for (int64_t i = 0; i < a.n; ++i) {
    const double x = a.x[i] >= a.least ? a.x[i] : -std::numeric_limits<float>::infinity();
    const double deep = (a.best - x) * a.scale, depth = deep < a.limit ? deep : a.limit;
    a.rounded[i] = depth + kWeighRounder;
    const double r = ((a.rounded[i] - kWeighRounder) - depth) * a.interval;
    a.weights[i] = 1.0 + r * (1.0 + r * (0.5 + r * (1.0 / 6 + r * (1.0 / 24))));
  }
}

double fma_flops(int64_t rounds) {
  volatile float acc = 0.1f;
  for (int64_t r = 0; r < rounds / 16; ++r) acc = std::fma(acc, 1.0001f, 1e-6f);
  return static_cast<double>(rounds / 16) * 2;
}

double int8_ops(int64_t rounds) {
  volatile int32_t acc = 1;
  volatile int8_t x = 3;
  for (int64_t r = 0; r < rounds / 16; ++r) acc = acc + x * 5;
  return static_cast<double>(rounds / 16) * 2;
}

float read_all(const float* x, int64_t n) {
  float sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i];
  return sum;
}

}  // namespace

const Kernels kScalarKernels{"scalar",    {matmul_integer, encode_act, arrange, int8_ops},
                             matmul,      attend,
                             attend_tile, merge_tiles,
                             rope,        rms_norm,
                             layer_norm,  activate,
                             add,         add_scaled,
                             scale,       soft_cap,
                             softmax,     weigh_logits,
                             fma_flops,   read_all};

}  // namespace kvasir
