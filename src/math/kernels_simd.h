// The SIMD kernels, written once over V16 (16 float lanes) and compiled once per CPU target by kernels_*.cc, which
// choose KVASIR_SIMD_NS and the tile shape first. Everything has internal linkage: no symbol compiled for a wide CPU may
// be shared with the baseline.
#pragma once

#include "math/functions.h"
#include "math/kernels.h"

namespace KVASIR_SIMD_NS {
namespace {

using kvasir::AttendArgs;
using kvasir::kFewTokens;
using kvasir::kPanelRows;
using kvasir::kTilePositions;
using kvasir::MatmulArgs;
using kvasir::RopeArgs;
using kvasir::RowKind;
using kvasir::Tile;

// ---- rows of each storage type: element i of a row, 16 at a time ------------------------------------------------

struct RowsF32 {
  static constexpr int kBytes = 4;
  static inline V16 at(const std::byte* row, int64_t i) { return load(reinterpret_cast<const float*>(row) + i); }
  static inline V16 at_n(const std::byte* row, int64_t i, int n) {
    return load_n(reinterpret_cast<const float*>(row) + i, n);
  }
};
struct RowsF16 {
  static constexpr int kBytes = 2;
  static inline V16 at(const std::byte* row, int64_t i) { return load_f16(row + 2 * i); }
  static inline V16 at_n(const std::byte* row, int64_t i, int n) { return load_f16_n(row + 2 * i, n); }
};
struct RowsBF16 {
  static constexpr int kBytes = 2;
  static inline V16 at(const std::byte* row, int64_t i) { return load_bf16(row + 2 * i); }
  static inline V16 at_n(const std::byte* row, int64_t i, int n) { return load_bf16_n(row + 2 * i, n); }
};

inline const std::byte* bytes_of(const float* p) { return reinterpret_cast<const std::byte*>(p); }

// ---- dots ------------------------------------------------------------------------------------------------------

// out[i] = fold(acc[i]); sixteen at a time by transposition, which keeps each fold's association.
template <int N>
inline void fold_all(const V16* acc, float* out) {
  int i = 0;
  for (; i + 16 <= N; i += 16) store(out + i, fold16(acc + i));
  if (N - i > 4) {
    V16 rest[16];
    for (int j = 0; j < 16; ++j) rest[j] = i + j < N ? acc[i + j] : zero();
    store_n(out + i, fold16(rest), N - i);
  } else {
    for (; i < N; ++i) out[i] = fold(acc[i]);
  }
}

constexpr int kPrefetchBytes = 8192;

// R rows by C tokens; out[r * C + c].
template <class Rows, int R, int C>
inline void dot_tile(const std::byte* w, size_t row_bytes, const float* x, int64_t x_stride, int64_t k, float* out) {
  V16 acc[R * C];
  for (int i = 0; i < R * C; ++i) acc[i] = zero();
  int64_t i = 0;
  for (; i + 16 <= k; i += 16) {
    V16 xv[C];
    for (int c = 0; c < C; ++c) xv[c] = load(x + c * x_stride + i);
    for (int r = 0; r < R; ++r) {
      const std::byte* row = w + static_cast<size_t>(r) * row_bytes;
      const V16 wv = Rows::at(row, i);
      if constexpr (C <= kFewTokens) prefetch(row + i * Rows::kBytes + kPrefetchBytes);
      for (int c = 0; c < C; ++c) acc[r * C + c] = fma(wv, xv[c], acc[r * C + c]);
    }
  }
  if (const int n = static_cast<int>(k - i); n > 0) {
    V16 xv[C];
    for (int c = 0; c < C; ++c) xv[c] = load_n(x + c * x_stride + i, n);
    for (int r = 0; r < R; ++r) {
      const V16 wv = Rows::at_n(w + static_cast<size_t>(r) * row_bytes, i, n);
      for (int c = 0; c < C; ++c) acc[r * C + c] = fma_n(wv, xv[c], acc[r * C + c], n);
    }
  }
  fold_all<R * C>(acc, out);
}

template <int R, int C>
inline void write_tile(const MatmulArgs& a, int64_t row, int token, const float* out) {
  for (int c = 0; c < C; ++c)
    for (int r = 0; r < R; ++r) {
      const float dot = out[r * C + c];
      a.y[(token + c) * a.y_stride + row + r] = a.bias != nullptr ? dot + a.bias[row + r] : dot;
    }
}

// ---- matmul: few tokens, rows straight from the file's form -----------------------------------------------------

template <class Rows, int R, int C>
inline void few_rows(const MatmulArgs& a) {
  float out[R * C];
  int64_t r = a.row_begin;
  for (; r + R <= a.row_end; r += R) {
    dot_tile<Rows, R, C>(a.w + static_cast<size_t>(r) * a.row_bytes, a.row_bytes, a.x, a.x_stride, a.cols, out);
    write_tile<R, C>(a, r, 0, out);
  }
  for (; r < a.row_end; ++r) {
    dot_tile<Rows, 1, C>(a.w + static_cast<size_t>(r) * a.row_bytes, a.row_bytes, a.x, a.x_stride, a.cols, out);
    write_tile<1, C>(a, r, 0, out);
  }
}

template <class Rows>
void matmul_few(const MatmulArgs& a) {
  switch (a.tokens) {
    case 1: return few_rows<Rows, kFewRows1, 1>(a);
    case 2: return few_rows<Rows, kFewRows2, 2>(a);
    case 3: return few_rows<Rows, kFewRows3, 3>(a);
    case 4: return few_rows<Rows, kFewRows4, 4>(a);
  }
}

// Conv1D [in][out]: a vector spans 16 outputs and the accumulator index is k mod 16, so lane and index change places
// and every sum keeps its order.
template <class Rows>
inline void conv1d_columns(const MatmulArgs& a, int64_t r, int n, int token) {
  V16 acc[16];
  for (int j = 0; j < 16; ++j) acc[j] = zero();
  const float* x = a.x + token * a.x_stride;
  const std::byte* w = a.w;
  int64_t k = 0;
  for (; k + 16 <= a.cols; k += 16, w += 16 * a.row_bytes)
    for (int j = 0; j < 16; ++j) {
      const std::byte* row = w + static_cast<size_t>(j) * a.row_bytes;
      const V16 wv = n == 16 ? Rows::at(row, r) : Rows::at_n(row, r, n);
      acc[j] = fma(wv, set1(x[k + j]), acc[j]);
    }
  for (int j = 0; k + j < a.cols; ++j)
    acc[j] = fma(Rows::at_n(w + static_cast<size_t>(j) * a.row_bytes, r, n), set1(x[k + j]), acc[j]);
  for (int step = 8; step > 0; step /= 2)
    for (int j = 0; j < step; ++j) acc[j] = acc[j] + acc[j + step];
  const V16 y = a.bias != nullptr ? acc[0] + load_n(a.bias + r, n) : acc[0];
  store_n(a.y + token * a.y_stride + r, y, n);
}

template <class Rows>
void conv1d_few(const MatmulArgs& a) {
  for (int64_t r = a.row_begin; r < a.row_end; r += 16)
    for (int t = 0; t < a.tokens; ++t)
      conv1d_columns<Rows>(a, r, static_cast<int>(a.row_end - r < 16 ? a.row_end - r : 16), t);
}

// ---- matmul: many tokens over a panel of weights widened once ---------------------------------------------------

template <class Rows>
void widen_rows(const MatmulArgs& a, int64_t row, int n) {
  for (int r = 0; r < n; ++r) {
    const std::byte* src = a.w + static_cast<size_t>(row + r) * a.row_bytes;
    float* dst = a.panel + r * a.cols;
    int64_t i = 0;
    for (; i + 16 <= a.cols; i += 16) store(dst + i, Rows::at(src, i));
    if (i < a.cols) store_n(dst + i, Rows::at_n(src, i, static_cast<int>(a.cols - i)), static_cast<int>(a.cols - i));
  }
}

template <class Rows>
void widen_columns(const MatmulArgs& a, int64_t row, int n) {
  for (int64_t k = 0; k < a.cols; ++k) {
    const std::byte* src = a.w + static_cast<size_t>(k) * a.row_bytes;
    float lanes[16];
    for (int r = 0; r < n; r += 16) {
      const int m = n - r < 16 ? n - r : 16;
      store_n(lanes, Rows::at_n(src, row + r, m), m);
      for (int j = 0; j < m; ++j) a.panel[(r + j) * a.cols + k] = lanes[j];
    }
  }
}

template <int R, int C>
inline void panel_tile(const MatmulArgs& a, int64_t row, int r, int token) {
  float out[R * C];
  dot_tile<RowsF32, R, C>(bytes_of(a.panel + r * a.cols), static_cast<size_t>(a.cols) * 4, a.x + token * a.x_stride,
                          a.x_stride, a.cols, out);
  write_tile<R, C>(a, row + r, token, out);
}

template <int C>
inline void panel_rows(const MatmulArgs& a, int64_t row, int n, int token) {
  int r = 0;
  for (; r + kTileRows <= n; r += kTileRows) panel_tile<kTileRows, C>(a, row, r, token);
  for (; r < n; ++r) panel_tile<1, C>(a, row, r, token);
}

// All tokens over panel rows [0, n), which are weight rows [row, row + n).
void matmul_panel(const MatmulArgs& a, int64_t row, int n) {
  int t = 0;
  for (; t + kTileTokens <= a.tokens; t += kTileTokens) panel_rows<kTileTokens>(a, row, n, t);
  for (; t < a.tokens; ++t) panel_rows<1>(a, row, n, t);
}

template <class Rows>
void matmul_rows(const MatmulArgs& a) {
  if (a.tokens <= kFewTokens) return a.conv1d ? conv1d_few<Rows>(a) : matmul_few<Rows>(a);
  for (int64_t row = a.row_begin; row < a.row_end; row += kPanelRows) {
    const int n = static_cast<int>(a.row_end - row < kPanelRows ? a.row_end - row : kPanelRows);
    if (a.conv1d) widen_columns<Rows>(a, row, n);
    else widen_rows<Rows>(a, row, n);
    matmul_panel(a, row, n);
  }
}

void decode_rows(const MatmulArgs& a, int64_t row, int n) {
  for (int r = 0; r < n; ++r)
    a.decode(a.w + static_cast<size_t>(row + r) * a.row_bytes, a.panel + r * a.cols, a.cols);
}

// The whole blocks of every stored row that hold columns [row, row + n).
void decode_columns(const MatmulArgs& a, int64_t row, int n) {
  float values[kPanelRows + 2 * kvasir::kMaxBlockElems];
  const int64_t block = row / a.block_elems, end = (row + n + a.block_elems - 1) / a.block_elems;
  const std::byte* src = a.w + static_cast<size_t>(block) * static_cast<size_t>(a.block_bytes);
  const float* wanted = values + (row - block * a.block_elems);
  for (int64_t k = 0; k < a.cols; ++k) {
    a.decode(src + static_cast<size_t>(k) * a.row_bytes, values, (end - block) * a.block_elems);
    for (int r = 0; r < n; ++r) a.panel[r * a.cols + k] = wanted[r];
  }
}

// A storage type without a loader of its own: the codec widens the panel.
void matmul_decoded(const MatmulArgs& a) {
  for (int64_t row = a.row_begin; row < a.row_end; row += kPanelRows) {
    const int n = static_cast<int>(a.row_end - row < kPanelRows ? a.row_end - row : kPanelRows);
    if (a.conv1d) decode_columns(a, row, n);
    else decode_rows(a, row, n);
    matmul_panel(a, row, n);
  }
}

void matmul(const MatmulArgs& a) {
  switch (a.kind) {
    case RowKind::f32: return matmul_rows<RowsF32>(a);
    case RowKind::f16: return matmul_rows<RowsF16>(a);
    case RowKind::bf16: return matmul_rows<RowsBF16>(a);
    case RowKind::decoded: return matmul_decoded(a);
  }
}

// ---- attention over one tile ------------------------------------------------------------------------------------

// Rows of one tile for one KV head as f32. Dead rows point at a live one: they are computed and thrown away, unread.
struct TileRows {
  const float* k[kTilePositions];
  const float* v[kTilePositions];
};

inline void point_rows(const std::byte* base, size_t stride, uint64_t live, int head_dim, kvasir::DecodeFn decode,
                       float* decoded, const float** rows) {
  const int first = __builtin_ctzll(live);
  for (uint64_t bits = live; bits != 0; bits &= bits - 1) {
    const int i = __builtin_ctzll(bits);
    const std::byte* row = base + static_cast<size_t>(i) * stride;
    rows[i] = reinterpret_cast<const float*>(row);
    if (decode != nullptr) {
      float* dst = decoded + static_cast<int64_t>(i) * head_dim;
      decode(row, dst, head_dim);
      rows[i] = dst;
    }
  }
  for (int i = 0; i < kTilePositions; ++i)
    if ((live >> i & 1) == 0) rows[i] = rows[first];
}

// Sixteen scores: dot(q, k_i) for 16 rows, folded together.
inline V16 score16(const float* q, const float* const* k, int head_dim) {
  V16 acc[16];
  for (int i = 0; i < 16; ++i) acc[i] = zero();
  int d = 0;
  for (; d + 16 <= head_dim; d += 16) {
    const V16 qv = load(q + d);
    for (int i = 0; i < 16; ++i) acc[i] = fma(qv, load(k[i] + d), acc[i]);
  }
  if (const int n = head_dim - d; n > 0) {
    const V16 qv = load_n(q + d, n);
    for (int i = 0; i < 16; ++i) acc[i] = fma_n(qv, load_n(k[i] + d, n), acc[i], n);
  }
  return fold16(acc);
}

inline float largest(V16 v) {
  float lanes[16];
  store(lanes, v);
  float m = lanes[0];
  for (int i = 1; i < 16; ++i) m = lanes[i] > m ? lanes[i] : m;
  return m;
}

// Scores, maximum, exponentials and their sum for one query: p[64], *m, *l. Dead rows get p = 0, which is never read.
inline void softmax_tile(const float* q, const float* const* k, uint64_t mask, int head_dim, float scale, float* p,
                         float* m, float* l) {
  const V16 minus_inf = set1(-__builtin_inff());
  V16 s[4], most = minus_inf;
  for (int g = 0; g < 4; ++g) {
    const uint32_t bits = static_cast<uint32_t>(mask >> (16 * g)) & 0xffffu;
    s[g] = bits != 0 ? score16(q, k + 16 * g, head_dim) * set1(scale) : minus_inf;
    most = max(select(mask_bits(bits), s[g], minus_inf), most);
  }
  *m = largest(most);
  V16 sum = zero();
  for (int g = 0; g < 4; ++g) {
    const uint32_t bits = static_cast<uint32_t>(mask >> (16 * g)) & 0xffffu;
    if (bits == 0) continue;
    const V16 e = select(mask_bits(bits), kvasir::exp_v(s[g] - set1(*m)), zero());
    store(p + 16 * g, e);
    sum = sum + e;
  }
  *l = fold(sum);
}

// o[h][d] = sum over live rows, ascending, of p[h][i] * v_i[d]; H heads share the loads of V.
template <int H>
inline void weigh_rows(const float* p, const float* const* v, uint64_t mask, int head_dim, float* o) {
  for (int d = 0; d < head_dim; d += 16) {
    const int n = head_dim - d < 16 ? head_dim - d : 16;
    V16 acc[H];
    for (int h = 0; h < H; ++h) acc[h] = zero();
    for (uint64_t bits = mask; bits != 0; bits &= bits - 1) {
      const int i = __builtin_ctzll(bits);
      const V16 vv = n == 16 ? load(v[i] + d) : load_n(v[i] + d, n);
      for (int h = 0; h < H; ++h) acc[h] = fma(set1(p[h * kTilePositions + i]), vv, acc[h]);
    }
    for (int h = 0; h < H; ++h) store_n(o + h * head_dim + d, acc[h], n);
  }
}

// The same with 64 channels in registers at once, for the head sizes that are multiples of 64.
template <int H>
inline void weigh_rows64(const float* p, const float* const* v, uint64_t mask, int head_dim, float* o) {
  for (int d = 0; d < head_dim; d += 64) {
    V16 acc[H * 4];
    for (int j = 0; j < H * 4; ++j) acc[j] = zero();
    for (uint64_t bits = mask; bits != 0; bits &= bits - 1) {
      const int i = __builtin_ctzll(bits);
      V16 vv[4];
      for (int j = 0; j < 4; ++j) vv[j] = load(v[i] + d + 16 * j);
      for (int h = 0; h < H; ++h) {
        const V16 ph = set1(p[h * kTilePositions + i]);
        for (int j = 0; j < 4; ++j) acc[h * 4 + j] = fma(ph, vv[j], acc[h * 4 + j]);
      }
    }
    for (int h = 0; h < H; ++h)
      for (int j = 0; j < 4; ++j) store(o + h * head_dim + d + 16 * j, acc[h * 4 + j]);
  }
}

template <int H>
inline void weigh(const float* p, const float* const* v, uint64_t mask, int head_dim, float* o) {
  if (head_dim % 64 == 0) weigh_rows64<H>(p, v, mask, head_dim, o);
  else weigh_rows<H>(p, v, mask, head_dim, o);
}

// ---- merging tiles ----------------------------------------------------------------------------------------------

// Running softmax state of one query: *m, *l and o[head_dim]; the first live tile is copied.
inline void merge_tile(float mj, float lj, const float* oj, int head_dim, bool first, float* m, float* l, float* o) {
  if (first) {
    *m = mj;
    *l = lj;
    for (int d = 0; d < head_dim; ++d) o[d] = oj[d];
    return;
  }
  const float top = mj > *m ? mj : *m;
  const V16 a = kvasir::exp_v(set1(*m) - set1(top)), b = kvasir::exp_v(set1(mj) - set1(top));
  float la[16];
  store(la, fma(set1(*l), a, set1(lj) * b));
  *l = la[0];
  *m = top;
  int d = 0;
  for (; d + 16 <= head_dim; d += 16) store(o + d, fma(load(o + d), a, load(oj + d) * b));
  if (const int n = head_dim - d; n > 0) store_n(o + d, fma(load_n(o + d, n), a, load_n(oj + d, n) * b), n);
}

inline void divide(const float* o, float l, int head_dim, float* out) {
  int d = 0;
  for (; d + 16 <= head_dim; d += 16) store(out + d, load(o + d) / set1(l));
  if (const int n = head_dim - d; n > 0) store_n(out + d, load_n(o + d, n) / set1(l), n);
}

// ---- attention over all tiles -----------------------------------------------------------------------------------

// One token's group of heads against one tile: softmax per head, V shared by up to four heads, then merged.
inline void attend_token_tile(const AttendArgs& a, const TileRows& rows, uint64_t mask, int t, bool first, float* state,
                              float* temp) {
  float* p = temp;                                   // [group][64]
  float* oj = p + a.group * kTilePositions;          // [group][head_dim]
  float* mj = oj + a.group * a.head_dim;             // [group]
  float* lj = mj + a.group;                          // [group]
  const float* q = a.q + t * a.q_stride;
  for (int h = 0; h < a.group; ++h)
    softmax_tile(q + h * a.head_dim, rows.k, mask, a.head_dim, a.scale, p + h * kTilePositions, mj + h, lj + h);
  for (int h = 0; h < a.group;) {
    const float* ph = p + h * kTilePositions;
    float* oh = oj + h * a.head_dim;
    switch (a.group - h) {
      case 1: weigh<1>(ph, rows.v, mask, a.head_dim, oh); h += 1; break;
      case 2: weigh<2>(ph, rows.v, mask, a.head_dim, oh); h += 2; break;
      case 3: weigh<3>(ph, rows.v, mask, a.head_dim, oh); h += 3; break;
      default: weigh<4>(ph, rows.v, mask, a.head_dim, oh); h += 4; break;
    }
  }
  for (int h = 0; h < a.group; ++h) {
    float* s = state + (static_cast<int64_t>(t) * a.group + h) * (a.head_dim + 2);
    merge_tile(mj[h], lj[h], oj + h * a.head_dim, a.head_dim, first, s, s + 1, s + 2);
  }
}

void attend(const AttendArgs& a) {
  float* k_decoded = a.scratch;
  float* v_decoded = k_decoded + int64_t{kTilePositions} * a.head_dim;
  float* state = v_decoded + int64_t{kTilePositions} * a.head_dim;
  float* temp = state + static_cast<int64_t>(a.tokens) * a.group * (a.head_dim + 2);
  const int end = a.first_pos + a.tokens;
  TileRows rows;
  uint64_t seen = 0;  // tokens that have met a live tile
  for (int j = 0; j < a.tile_count; ++j) {
    const Tile& tile = a.tiles[j];
    const uint64_t live = tile.live & kvasir::live_below(tile.first, end);
    if (live == 0) continue;
    point_rows(tile.k + a.k_offset, tile.k_stride, live, a.head_dim, a.decode_k, k_decoded, rows.k);
    point_rows(tile.v + a.v_offset, tile.v_stride, live, a.head_dim, a.decode_v, v_decoded, rows.v);
    for (int t = 0; t < a.tokens; ++t) {
      const uint64_t mask = live & kvasir::live_below(tile.first, a.first_pos + t + 1);
      if (mask == 0) continue;
      const bool first = (seen >> t & 1) == 0;
      seen |= uint64_t{1} << t;
      attend_token_tile(a, rows, mask, t, first, state, temp);
    }
  }
  for (int t = 0; t < a.tokens; ++t)
    for (int h = 0; h < a.group; ++h) {
      const float* s = state + (static_cast<int64_t>(t) * a.group + h) * (a.head_dim + 2);
      divide(s + 2, s[1], a.head_dim, a.out + t * a.out_stride + h * a.head_dim);
    }
}

// ---- norms, rotations, activations ------------------------------------------------------------------------------

inline float first_lane(V16 v) {
  float lanes[16];
  store(lanes, v);
  return lanes[0];
}

inline float inverse_root(float variance, float eps) { return first_lane(set1(1.0f) / sqrt(set1(variance + eps))); }

// fold(sum of (x - center)^2), lanes by fma.
inline float square_sum(const float* x, float center, int64_t n) {
  V16 acc = zero();
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const V16 d = load(x + i) - set1(center);
    acc = fma(d, d, acc);
  }
  if (const int m = static_cast<int>(n - i); m > 0) {
    const V16 d = load_n(x + i, m) - set1(center);
    acc = fma_n(d, d, acc, m);
  }
  return fold(acc);
}

void rms_norm(const float* x, const float* gain, float eps, float* y, int64_t n) {
  const float scale = inverse_root(square_sum(x, 0.0f, n) / static_cast<float>(n), eps);
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) store(y + i, load(x + i) * set1(scale) * load(gain + i));
  if (const int m = static_cast<int>(n - i); m > 0)
    store_n(y + i, load_n(x + i, m) * set1(scale) * load_n(gain + i, m), m);
}

inline float plain_sum(const float* x, int64_t n) {
  V16 acc = zero();
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) acc = fma(load(x + i), set1(1.0f), acc);
  if (const int m = static_cast<int>(n - i); m > 0) acc = fma_n(load_n(x + i, m), set1(1.0f), acc, m);
  return fold(acc);
}

void layer_norm(const float* x, const float* gain, const float* bias, float eps, float* y, int64_t n) {
  const float mean = plain_sum(x, n) / static_cast<float>(n);
  const float scale = inverse_root(square_sum(x, mean, n) / static_cast<float>(n), eps);
  int64_t i = 0;
  for (; i + 16 <= n; i += 16)
    store(y + i, fma((load(x + i) - set1(mean)) * set1(scale), load(gain + i), load(bias + i)));
  if (const int m = static_cast<int>(n - i); m > 0)
    store_n(y + i, fma((load_n(x + i, m) - set1(mean)) * set1(scale), load_n(gain + i, m), load_n(bias + i, m)), m);
}

// (a, b) -> (a cos - b sin, b cos + a sin)
inline void rotate_pair(float* a, float* b, float c, float s) {
  const float x = *a, y = *b;
  *a = __builtin_fmaf(x, c, -(y * s));
  *b = __builtin_fmaf(y, c, x * s);
}

void rope(const RopeArgs& args) {
  const int half = args.head_dim / 2;
  for (int h = 0; h < args.heads; ++h) {
    float* x = args.row + static_cast<int64_t>(h) * args.head_dim;
    if (args.interleaved) {
      for (int i = 0; i < half; ++i) rotate_pair(x + 2 * i, x + 2 * i + 1, args.cos[i], args.sin[i]);
      continue;
    }
    int i = 0;
    for (; i + 16 <= half; i += 16) {
      const V16 a = load(x + i), b = load(x + half + i), c = load(args.cos + i), s = load(args.sin + i);
      store(x + i, fma(a, c, negate(b * s)));
      store(x + half + i, fma(b, c, a * s));
    }
    for (; i < half; ++i) rotate_pair(x + i, x + half + i, args.cos[i], args.sin[i]);
  }
}

template <class F>
inline void map16(float* x, int64_t n, F f) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) store(x + i, f(load(x + i), i, 16));
  if (const int m = static_cast<int>(n - i); m > 0) store_n(x + i, f(load_n(x + i, m), i, m), m);
}

void silu_mul(float* gate, const float* up, int64_t n) {
  map16(gate, n, [up](V16 g, int64_t i, int m) { return kvasir::silu_v(g) * load_n(up + i, m); });
}

void gelu(float* x, int64_t n) {
  map16(x, n, [](V16 v, int64_t, int) { return kvasir::gelu_tanh_v(v); });
}

void add(float* x, const float* y, int64_t n) {
  map16(x, n, [y](V16 v, int64_t i, int m) { return v + load_n(y + i, m); });
}

// Independent chains: enough to hide the latency, few enough to stay in registers.
double fma_flops(int64_t rounds) {
  constexpr int kChains = kTileRows * kTileTokens;
  V16 acc[kChains];
  for (int i = 0; i < kChains; ++i) acc[i] = set1(0.1f * static_cast<float>(i));
  const V16 x = set1(1.0001f), y = set1(1e-6f);
  for (int64_t r = 0; r < rounds; ++r)
    for (int i = 0; i < kChains; ++i) acc[i] = fma(acc[i], x, y);
  V16 sum = zero();
  for (int i = 0; i < kChains; ++i) sum = sum + acc[i];
  float lanes[16];
  store(lanes, sum);
  return lanes[0] != 123.0f ? static_cast<double>(rounds) * kChains * 32 : 0;  // reads the result, so it is computed
}

}  // namespace

constexpr kvasir::Kernels make_kernels(const char* name) {
  return {name, matmul, attend, rope, rms_norm, layer_norm, silu_mul, gelu, add, fma_flops};
}

}  // namespace KVASIR_SIMD_NS
