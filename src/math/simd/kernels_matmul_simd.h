// Dot and matrix products over V16; part of kernels_simd.h, whose head explains how it is compiled.
#pragma once

#include <cstddef>
#include <type_traits>

#include "math/kernels.h"

namespace KVASIR_SIMD_NS {
namespace {

using kvasir::kFewTokens;
using kvasir::kPanelRows;
using kvasir::MatmulArgs;
using kvasir::RowForm;

// ---- rows of each storage type: element i of a row, 16 at a time, or a register's lanes ------------------------

struct RowsF32 {
  static constexpr int kBytes = 4;
  static inline V16 at(const std::byte* row, int64_t i) { return load(reinterpret_cast<const float*>(row) + i); }
  static inline V16 at_n(const std::byte* row, int64_t i, int n) {
    return load_n(reinterpret_cast<const float*>(row) + i, n);
  }
  static inline Reg reg(const std::byte* row, int64_t i) { return load_reg(reinterpret_cast<const float*>(row) + i); }
};
struct RowsF16 {
  static constexpr int kBytes = 2;
  static inline V16 at(const std::byte* row, int64_t i) { return load_f16(row + 2 * i); }
  static inline V16 at_n(const std::byte* row, int64_t i, int n) { return load_f16_n(row + 2 * i, n); }
  static inline Reg reg(const std::byte* row, int64_t i) { return load_reg_f16(row + 2 * i); }
};
struct RowsBF16 {
  static constexpr int kBytes = 2;
  static inline V16 at(const std::byte* row, int64_t i) { return load_bf16(row + 2 * i); }
  static inline V16 at_n(const std::byte* row, int64_t i, int n) { return load_bf16_n(row + 2 * i, n); }
  static inline Reg reg(const std::byte* row, int64_t i) { return load_reg_bf16(row + 2 * i); }
};

inline float first_lane(V16 v) {
  float lanes[16];
  store(lanes, v);
  return lanes[0];
}

inline const std::byte* bytes_of(const float* p) { return reinterpret_cast<const std::byte*>(p); }

// ---- dots ------------------------------------------------------------------------------------------------------

// out[i] = fold(acc[i]); sixteen at a time by transposition, which adds in the same order as fold().
template <int N>
KVASIR_SIMD_FN void fold_all(const V16* acc, float* out) {
  int i = 0;
  for (; i + 16 <= N; i += 16) store(out + i, fold16(acc + i));
  if (N - i > 4) {
    V16 rest[16];
    KVASIR_UNROLL
    for (int j = 0; j < 16; ++j) rest[j] = i + j < N ? acc[i + j] : zero();
    store_n(out + i, fold16(rest), N - i);
  } else {
    for (; i < N; ++i) out[i] = fold(acc[i]);
  }
}

// Adds the products of 16 columns, of R rows by C tokens, to acc. `ahead`: distance from each row to the one to
// prefetch.
template <class Weights, int R, int C>
inline void dot_step(const std::byte* w, size_t stride, ptrdiff_t ahead, const float* x, int64_t x_stride, int64_t i,
                     V16* acc) {
  V16 xv[C];
  KVASIR_UNROLL
  for (int c = 0; c < C; ++c) xv[c] = load(x + c * x_stride + i);
  KVASIR_UNROLL
  for (int r = 0; r < R; ++r) {
    const std::byte* row = w + static_cast<size_t>(r) * stride;
    const V16 wv = Weights::at(row, i);
    if (ahead != 0) prefetch(row + i * Weights::kBytes + ahead);
    KVASIR_UNROLL
    for (int c = 0; c < C; ++c) acc[r * C + c] = fma(wv, xv[c], acc[r * C + c]);
  }
}

// R rows, `stride` bytes apart, by C tokens: out[r * C + c].
template <class Weights, int R, int C>
inline void dot_tile(const std::byte* w, size_t stride, ptrdiff_t ahead, const float* x, int64_t x_stride, int64_t k,
                     float* out) {
  V16 acc[R * C];
  KVASIR_UNROLL
  for (int i = 0; i < R * C; ++i) acc[i] = zero();
  int64_t i = 0;
  if (ahead != 0 && Weights::kBytes == 2)  // a line is 32 columns
    for (; i + 32 <= k; i += 32) {
      dot_step<Weights, R, C>(w, stride, ahead, x, x_stride, i, acc);
      dot_step<Weights, R, C>(w, stride, 0, x, x_stride, i + 16, acc);
    }
  for (; i + 16 <= k; i += 16) dot_step<Weights, R, C>(w, stride, ahead, x, x_stride, i, acc);
  if (const int n = static_cast<int>(k - i); n > 0) {
    V16 xv[C];
    KVASIR_UNROLL
    for (int c = 0; c < C; ++c) xv[c] = load_n(x + c * x_stride + i, n);
    KVASIR_UNROLL
    for (int r = 0; r < R; ++r) {
      const V16 wv = Weights::at_n(w + static_cast<size_t>(r) * stride, i, n);
      KVASIR_UNROLL
      for (int c = 0; c < C; ++c) acc[r * C + c] = fma_n(wv, xv[c], acc[r * C + c], n);
    }
  }
  fold_all<R * C>(acc, out);
}

// Writes the outputs of rows row, row + step, ...
template <int R, int C>
inline void write_tile(const MatmulArgs& a, int64_t row, int64_t step, int token, const float* out) {
  KVASIR_UNROLL
  for (int c = 0; c < C; ++c) KVASIR_UNROLL
  for (int r = 0; r < R; ++r) {
    const float dot = out[r * C + c];
    const int64_t at = row + r * step;
    a.y[(token + c) * a.y_stride + at] = a.bias != nullptr ? dot + a.bias[at] : dot;
  }
}

// ---- matmul: few tokens, rows read in their stored form ---------------------------------------------------------

// R streams of consecutive rows, far enough apart that memory serves them at the same time.
template <class Weights, int R, int C>
inline void few_rows(const MatmulArgs& a) {
  float out[R * C];
  const auto ahead = static_cast<ptrdiff_t>(a.row_bytes);
  const int64_t step = (a.row_end - a.row_begin) / R;
  const auto tile = [&]<int N>(std::integral_constant<int, N>, int64_t row) {
    dot_tile<Weights, N, C>(a.w + static_cast<size_t>(row) * a.row_bytes, static_cast<size_t>(step) * a.row_bytes,
                            ahead, a.x, a.x_stride, a.cols, out);
    write_tile<N, C>(a, row, step, 0, out);
  };
  for (int64_t r = 0; r < step; ++r) tile(std::integral_constant<int, R>(), a.row_begin + r);
  for (int64_t r = a.row_begin + step * R; r < a.row_end; ++r) tile(std::integral_constant<int, 1>(), r);
}

template <class Weights>
void matmul_few(const MatmulArgs& a) {
  switch (a.tokens) {
    case 1:
      return few_rows<Weights, kFewRows1, 1>(a);
    case 2:
      return few_rows<Weights, kFewRows2, 2>(a);
    case 3:
      return few_rows<Weights, kFewRows3, 3>(a);
    case 4:
      return few_rows<Weights, kFewRows4, 4>(a);
  }
}

// Conv1D [in, out]: a vector spans 16 outputs, and the accumulator index is k mod 16. Lane and index swap roles, and
// every sum keeps its order.
template <class Weights>
inline void conv1d_columns(const MatmulArgs& a, int64_t r, int n, int token) {
  V16 acc[16];
  KVASIR_UNROLL
  for (int j = 0; j < 16; ++j) acc[j] = zero();
  const float* x = a.x + token * a.x_stride;
  const std::byte* w = a.w;
  int64_t k = 0;
  for (; k + 16 <= a.cols; k += 16, w += 16 * a.row_bytes) KVASIR_UNROLL
  for (int j = 0; j < 16; ++j) {
    const std::byte* row = w + static_cast<size_t>(j) * a.row_bytes;
    const V16 wv = n == 16 ? Weights::at(row, r) : Weights::at_n(row, r, n);
    acc[j] = fma(wv, set1(x[k + j]), acc[j]);
  }
  for (int j = 0; k + j < a.cols; ++j)
    acc[j] = fma(Weights::at_n(w + static_cast<size_t>(j) * a.row_bytes, r, n), set1(x[k + j]), acc[j]);
  for (int step = 8; step > 0; step /= 2)
    for (int j = 0; j < step; ++j) acc[j] = acc[j] + acc[j + step];
  const V16 y = a.bias != nullptr ? acc[0] + load_n(a.bias + r, n) : acc[0];
  store_n(a.y + token * a.y_stride + r, y, n);
}

template <class Weights>
void conv1d_few(const MatmulArgs& a) {
  for (int64_t r = a.row_begin; r < a.row_end; r += 16)
    for (int t = 0; t < a.tokens; ++t)
      conv1d_columns<Weights>(a, r, static_cast<int>(a.row_end - r < 16 ? a.row_end - r : 16), t);
}

// ---- matmul: many tokens, rows widened while they are multiplied ------------------------------------------------

/// Weights in memory; the r-th is weight row first + r.
struct StoredRows {
  const std::byte* base;
  size_t stride;
  int64_t first;
  bool far;  // not in the cache yet

  const std::byte* row(int64_t r) const { return base + static_cast<size_t>(r) * stride; }
};

// Sums over the whole sixteens of k columns, for R rows at w by C tokens, one register of lanes after the other: their
// accumulators fit the registers, while those of all sixteen lanes would spill. sums[r * C + c]. `ahead`: distance to
// the rows to prefetch meanwhile; 0: none.
template <class Weights, int R, int C>
inline void row_sums(const std::byte* w, size_t w_stride, ptrdiff_t ahead, const float* x, int64_t x_stride, int64_t k,
                     V16* sums) {
  constexpr int kLine = 64 / Weights::kBytes;
  Reg acc[kRegs * R * C];
  const int64_t end = k / 16 * 16;
  for (int part = 0; part < kRegs; ++part) {
    Reg a[R * C];
    const auto add = [&]<bool kAsks>(int64_t i, std::bool_constant<kAsks>) {
      Reg xv[C];
      KVASIR_UNROLL
      for (int c = 0; c < C; ++c) xv[c] = load_reg(x + c * x_stride + i);
      KVASIR_UNROLL
      for (int r = 0; r < R; ++r) {
        const std::byte* row = w + static_cast<size_t>(r) * w_stride;
        const Reg wv = Weights::reg(row, i);
        if constexpr (kAsks) prefetch(row + i * Weights::kBytes + ahead);
        KVASIR_UNROLL
        for (int c = 0; c < C; ++c) a[r * C + c] = fma(wv, xv[c], a[r * C + c]);
      }
    };
    KVASIR_UNROLL
    for (int i = 0; i < R * C; ++i) a[i] = zero_reg();
    int64_t i = part * kRegLanes;
    if (ahead != 0 && part == 0)
      for (; i + kLine <= end; i += kLine) {
        add(i, std::true_type());
        if constexpr (kLine > 16) add(i + 16, std::false_type());
      }
    for (; i < end; i += 16) add(i, std::false_type());
    KVASIR_UNROLL
    for (int j = 0; j < R * C; ++j) acc[part * R * C + j] = a[j];
  }
  KVASIR_UNROLL
  for (int i = 0; i < R * C; ++i) sums[i] = join(acc + i, R * C);
}

// Computes R rows from the r-th on by C tokens.
template <class Weights, int R, int C>
inline void row_tile(const MatmulArgs& a, const StoredRows& rows, int64_t r, int token, ptrdiff_t ahead) {
  const std::byte* w = rows.row(r);
  const float* x = a.x + token * a.x_stride;
  V16 sums[R * C];
  row_sums<Weights, R, C>(w, rows.stride, ahead, x, a.x_stride, a.cols, sums);
  const int64_t i = a.cols / 16 * 16;
  if (const int n = static_cast<int>(a.cols - i); n > 0)
    for (int j = 0; j < R * C; ++j)
      sums[j] = fma_n(Weights::at_n(w + static_cast<size_t>(j / C) * rows.stride, i, n),
                      load_n(x + j % C * a.x_stride + i, n), sums[j], n);
  float out[R * C];
  fold_all<R * C>(sums, out);
  write_tile<R, C>(a, rows.first + r, 1, token, out);
}

/// Weights [from, end); those in [ask_from, ask_end) prefetch the rows `ahead` bytes further on.
struct RowRange {
  int64_t from, end, ask_from, ask_end;
  ptrdiff_t ahead;
};

template <class Weights, int C>
inline void range_by_tokens(const MatmulArgs& a, const StoredRows& rows, const RowRange& range, int token) {
  int64_t r = range.from;
  for (; r + kTileRows <= range.end; r += kTileRows)
    row_tile<Weights, kTileRows, C>(a, rows, r, token, r >= range.ask_from && r < range.ask_end ? range.ahead : 0);
  for (; r < range.end; ++r) row_tile<Weights, 1, C>(a, rows, r, token, 0);
}

template <class Weights>
inline void range_by_all(const MatmulArgs& a, const StoredRows& rows, RowRange range, int token, int end) {
  const int groups = (end - token + kTileTokens - 1) / kTileTokens;
  const int64_t n = range.end - range.from;
  int t = token, group = 0;
  const auto by = [&]<int C>(std::integral_constant<int, C>) {
    for (; t + C <= end; t += C, ++group) {
      // Each group of tokens prefetches a share of the rows that come next, so that memory is never idle.
      range.ask_from = range.from + n * group / groups;
      range.ask_end = range.from + n * (group + 1) / groups;
      range_by_tokens<Weights, C>(a, rows, range, t);
    }
  };
  by(std::integral_constant<int, kTileTokens>());
  if constexpr (kTileTokens > 4) by(std::integral_constant<int, 4>());
  by(std::integral_constant<int, 2>());
  by(std::integral_constant<int, 1>());
}

// Computes n rows by all tokens: as many tokens at a time as fit the level-2 cache, and as many rows as fit part of the
// level-1 cache.
template <class Weights>
void rows_by_all(const MatmulArgs& a, const StoredRows& rows, int64_t n) {
  constexpr int64_t kRowsBytes = 12 << 10, kTokensBytes = 384 << 10;
  const auto fitting = [](int64_t bytes, int64_t one, int unit) {
    const int64_t units = bytes / (one * unit);
    return (units < 1 ? 1 : units) * unit;
  };
  const int64_t fit = fitting(kRowsBytes, a.cols * Weights::kBytes, kTileRows);
  const auto tokens =
      static_cast<int>(fitting(kTokensBytes, a.cols * static_cast<int64_t>(sizeof(float)), kTileTokens));
  const int64_t together = a.tokens <= tokens ? n : kPanelRows;
  for (int64_t begin = 0; begin < n; begin += together)
    for (int t = 0; t < a.tokens; t += tokens)
      for (int64_t r = begin; r < n && r < begin + together; r += fit) {
        RowRange range{r, r + fit, 0, 0, 0};
        if (range.end > n) range.end = n;
        if (range.end > begin + together) range.end = begin + together;
        if (rows.far && t == 0 && r + 2 * fit <= n)
          range.ahead = static_cast<ptrdiff_t>(fit) * static_cast<ptrdiff_t>(rows.stride);
        range_by_all<Weights>(a, rows, range, t, t + tokens < a.tokens ? t + tokens : a.tokens);
      }
}

// ---- matmul: many tokens over a panel of weights widened once ---------------------------------------------------

// `row` is the weight row of the panel's first row.
void panel_by_all(const MatmulArgs& a, int64_t row, int n) {
  rows_by_all<RowsF32>(a, {bytes_of(a.panel), static_cast<size_t>(a.cols) * sizeof(float), row, false}, n);
}

template <class Weights>
void widen_rows(const MatmulArgs& a, int64_t row, int n) {
  for (int r = 0; r < n; ++r) {
    const std::byte* src = a.w + static_cast<size_t>(row + r) * a.row_bytes;
    float* dst = a.panel + r * a.cols;
    int64_t i = 0;
    for (; i + 16 <= a.cols; i += 16) store(dst + i, Weights::at(src, i));
    if (i < a.cols) store_n(dst + i, Weights::at_n(src, i, static_cast<int>(a.cols - i)), static_cast<int>(a.cols - i));
  }
}

template <class Weights>
void widen_columns(const MatmulArgs& a, int64_t row, int n) {
  for (int64_t k = 0; k < a.cols; ++k) {
    const std::byte* src = a.w + static_cast<size_t>(k) * a.row_bytes;
    float lanes[16];
    for (int r = 0; r < n; r += 16) {
      const int m = n - r < 16 ? n - r : 16;
      store_n(lanes, Weights::at_n(src, row + r, m), m);
      for (int j = 0; j < m; ++j) a.panel[(r + j) * a.cols + k] = lanes[j];
    }
  }
}

template <class Weights>
void matmul_panels(const MatmulArgs& a) {
  for (int64_t row = a.row_begin; row < a.row_end; row += kPanelRows) {
    const int n = static_cast<int>(a.row_end - row < kPanelRows ? a.row_end - row : kPanelRows);
    if (a.conv1d)
      widen_columns<Weights>(a, row, n);
    else
      widen_rows<Weights>(a, row, n);
    panel_by_all(a, row, n);
  }
}

// Whether to widen the rows once into a panel: if that saves instructions that a register of all lanes does not need.
template <class Weights>
bool wants_panel(const MatmulArgs& a) {
  constexpr int kManyTokens = 128;
  return a.conv1d || (kRegs > 1 && Weights::kBytes < 4 && a.tokens > kManyTokens);
}

template <class Weights>
void matmul_rows(const MatmulArgs& a) {
  if (a.tokens <= kFewTokens) return a.conv1d ? conv1d_few<Weights>(a) : matmul_few<Weights>(a);
  if (wants_panel<Weights>(a)) return matmul_panels<Weights>(a);
  const std::byte* base = a.w + static_cast<size_t>(a.row_begin) * a.row_bytes;
  rows_by_all<Weights>(a, {base, a.row_bytes, a.row_begin, true}, a.row_end - a.row_begin);
}

void decode_rows(const MatmulArgs& a, int64_t row, int n) {
  for (int r = 0; r < n; ++r) a.decode(a.w + static_cast<size_t>(row + r) * a.row_bytes, a.panel + r * a.cols, a.cols);
}

// Decodes, from every stored row, the whole blocks that contain columns [row, row + n).
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

// For a storage type without its own loader: the codec widens the panel.
void matmul_decoded(const MatmulArgs& a) {
  for (int64_t row = a.row_begin; row < a.row_end; row += kPanelRows) {
    const int n = static_cast<int>(a.row_end - row < kPanelRows ? a.row_end - row : kPanelRows);
    if (a.conv1d)
      decode_columns(a, row, n);
    else
      decode_rows(a, row, n);
    panel_by_all(a, row, n);
  }
}

void matmul(const MatmulArgs& a) {
  switch (a.form) {
    case RowForm::f32:
      return matmul_rows<RowsF32>(a);
    case RowForm::f16:
      return matmul_rows<RowsF16>(a);
    case RowForm::bf16:
      return matmul_rows<RowsBF16>(a);
    default:
      return matmul_decoded(a);
  }
}

}  // namespace
}  // namespace KVASIR_SIMD_NS
