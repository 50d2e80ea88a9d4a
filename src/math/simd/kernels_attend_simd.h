// Attention over tiles on V16; part of kernels_simd.h, whose head explains how it is compiled. A query is one head of
// one token; queries are processed in blocks that share the loads of K and V.
#pragma once

#include "math/functions.h"
#include "math/simd/kernels_matmul_simd.h"

namespace KVASIR_SIMD_NS {
namespace {

using kvasir::AttendArgs;
using kvasir::kAttendBlock;
using kvasir::kTilePositions;
using kvasir::MergeArgs;
using kvasir::Tile;

// Position of token t; query and output of its h-th head.
inline int position_of(const AttendArgs& a, int t) { return a.rows != nullptr ? a.rows[t].pos : a.first_pos + t; }
inline const float* query_of(const AttendArgs& a, int t, int h) {
  return (a.rows != nullptr ? a.rows[t].q : a.q + t * a.q_stride) + static_cast<int64_t>(h) * a.head_dim;
}
inline float* out_of(const AttendArgs& a, int t, int h) {
  return (a.rows != nullptr ? a.rows[t].out : a.out + t * a.out_stride) + static_cast<int64_t>(h) * a.head_dim;
}

// Number of channels, of n, in the 16 that begin at channel i.
KVASIR_SIMD_FN int part_of(int n, int i) { return n - i < 0 ? 0 : n - i < 16 ? n - i : 16; }

// ---- one head of a stored row ------------------------------------------------------------------------------------

// Loaders, one struct per form: load() reads kStep channels, stored in kStepBytes. load_n() reads the first n < kStep
// of them; the other lanes are unspecified. A head of a block type is whole blocks.

template <class Weights>
struct HeadOf {
  static constexpr int kStep = 16, kStepBytes = kStep * Weights::kBytes;
  static KVASIR_SIMD_MEMBER void load(const std::byte* head, int d, V16* out) { *out = Weights::at(head, d); }
  static KVASIR_SIMD_MEMBER void load_n(const std::byte* head, int d, int n, V16* out) {
    *out = Weights::at_n(head, d, n);
  }
};
struct HeadQ8_0 {
  static constexpr int kStepBytes = 34, kStep = 32;
  static KVASIR_SIMD_MEMBER void load(const std::byte* head, int d, V16* out) {
    load_q8_0(head + d / kStep * kStepBytes, out);
  }
  static KVASIR_SIMD_MEMBER void load_n(const std::byte* head, int d, int, V16* out) { load(head, d, out); }
};
struct HeadQ4_0 {
  static constexpr int kStepBytes = 18, kStep = 32;
  static KVASIR_SIMD_MEMBER void load(const std::byte* head, int d, V16* out) {
    load_q4_0(head + d / kStep * kStepBytes, out);
  }
  static KVASIR_SIMD_MEMBER void load_n(const std::byte* head, int d, int, V16* out) { load(head, d, out); }
};

inline bool has_head(RowForm form) {
  return form == RowForm::f32 || form == RowForm::f16 || form == RowForm::bf16 || form == RowForm::q8_0 ||
         form == RowForm::q4_0;
}
// Calls f with the loader of a form that has one.
template <class F>
inline void with_head(RowForm form, F&& f) {
  if (form == RowForm::f16)
    f(HeadOf<RowsF16>{});
  else if (form == RowForm::bf16)
    f(HeadOf<RowsBF16>{});
  else if (form == RowForm::q8_0)
    f(HeadQ8_0{});
  else if (form == RowForm::q4_0)
    f(HeadQ4_0{});
  else
    f(HeadOf<RowsF32>{});
}

template <class Head>
inline void widen(const std::byte* head, float* dst, int n) {
  V16 v[Head::kStep / 16];
  int d = 0;
  for (; d + Head::kStep <= n; d += Head::kStep) {
    Head::load(head, d, v);
    for (int i = 0; i < Head::kStep; i += 16) store(dst + d + i, v[i / 16]);
  }
  if (d == n) return;
  Head::load_n(head, d, n - d, v);
  for (int i = 0; d + i < n; i += 16) store_n(dst + d + i, v[i / 16], part_of(n - d, i));
}

// ---- the rows of one tile for one KV head -----------------------------------------------------------------------

// Row i of a tile, readable for every i: in the cache, or a widened copy if some rows are dead. Dead rows are computed
// and ignored. `next` is where the rows of the following tile begin (this tile's own if there is none); they are
// prefetched, since heads lie at a stride that no hardware prefetcher predicts.
struct TileRows {
  const std::byte *base, *next;
  size_t stride;
  RowForm form;

  const std::byte* row(int i) const { return base + static_cast<size_t>(i) * stride; }
  // Prefetches the line in which row i's step at channel d begins. Blocks begin anywhere in a line, so the first byte
  // of the first block and the last byte of each other block are prefetched. Always inlined: as a call, GCC would drop
  // it as a function without effects.
  template <class Head>
  KVASIR_SIMD_MEMBER void fetch_next(int i, int d) const {
    const int step = d / Head::kStep * Head::kStepBytes;
    constexpr bool kBlocks = 64 % Head::kStepBytes != 0;
    if (!kBlocks && step % 64 != 0) return;
    prefetch(next + static_cast<size_t>(i) * stride + (kBlocks && d != 0 ? step + Head::kStepBytes - 1 : step));
  }
};

// Widens the live rows to f32 in `room` [64, head_dim], and makes `rows` point there.
inline void widen_rows(TileRows& rows, uint64_t live, kvasir::DecodeFn decode, int head_dim, float* room) {
  const auto each = [&](auto&& one) {
    for (uint64_t bits = live; bits != 0; bits &= bits - 1) {
      const int i = __builtin_ctzll(bits);
      one(rows.row(i), room + int64_t{i} * head_dim);
    }
  };
  if (has_head(rows.form))
    with_head(rows.form, [&](auto head) {
      each([&](const std::byte* from, float* to) { widen<decltype(head)>(from, to, head_dim); });
    });
  else
    each([&](const std::byte* from, float* to) { decode(from, to, head_dim); });
  rows = {bytes_of(room), bytes_of(room), static_cast<size_t>(head_dim) * 4, RowForm::f32};
}

// out[d][i] = channel d of row i.
template <class Head>
inline void transpose_rows(const TileRows& rows, int head_dim, float* out) {
  constexpr int kParts = Head::kStep / 16;
  for (int i = 0; i < kTilePositions; i += 16)
    for (int d = 0; d < head_dim; d += Head::kStep) {
      const int n = head_dim - d;
      V16 lines[kParts][16], columns[16];
      for (int r = 0; r < 16; ++r) {
        V16 v[kParts];
        if (n < Head::kStep)
          Head::load_n(rows.row(i + r), d, n, v);
        else
          Head::load(rows.row(i + r), d, v);
        rows.fetch_next<Head>(i + r, d);
        for (int j = 0; j < kParts; ++j) lines[j][r] = v[j];
      }
      for (int j = 0; 16 * j < n && j < kParts; ++j) {
        transpose16(lines[j], columns);
        for (int c = 0; c < part_of(n, 16 * j); ++c)
          store(out + static_cast<int64_t>(d + 16 * j + c) * kTilePositions + i, columns[c]);
      }
    }
}

// ---- scores -----------------------------------------------------------------------------------------------------

// acc[n * R + r] is the lanes of the dot of query n with row i + r, for Q queries that share the loads of R rows. If v
// is given, one in four of the next rows of V is prefetched here: the loop over V is shorter, and stalls if it
// prefetches faster than lines arrive. Rows of f32 take longer to arrive than to compute, wherever they are prefetched.
template <class Head, int Q, int R>
KVASIR_SIMD_FN void dot_rows(const float* const* q, const TileRows& k, const TileRows* v, int i, int head_dim,
                             V16* acc) {
  constexpr bool kNarrow = Head::kStepBytes < 4 * Head::kStep;
  V16 kv[Head::kStep / 16];
  KVASIR_UNROLL
  for (int j = 0; j < Q * R; ++j) acc[j] = zero();
  int d = 0;
  for (; d + Head::kStep <= head_dim; d += Head::kStep) KVASIR_UNROLL
  for (int r = 0; r < R; ++r) {
    Head::load(k.row(i + r), d, kv);
    k.fetch_next<Head>(i + r, d);
    if (kNarrow && r % 4 == 0 && v != nullptr) v->fetch_next<Head>(i + r, d);
    KVASIR_UNROLL
    for (int j = 0; j < Q * Head::kStep / 16; ++j)
      acc[j % Q * R + r] = fma(load(q[j % Q] + d + j / Q * 16), kv[j / Q], acc[j % Q * R + r]);
  }
  const int n = head_dim - d;
  if (n == 0) return;
  KVASIR_UNROLL
  for (int r = 0; r < R; ++r) {
    Head::load_n(k.row(i + r), d, n, kv);
    for (int j = 0; j < Head::kStep / 16; ++j) {
      const int m = part_of(n, 16 * j);
      KVASIR_UNROLL
      for (int c = 0; c < Q; ++c) acc[c * R + r] = fma_n(load_n(q[c] + d + 16 * j, m), kv[j], acc[c * R + r], m);
    }
  }
}

// scores[q][64] before scaling. Sums are folded sixteen at a time. Several rows at once wait less often for memory,
// even if their accumulators exceed the registers (AVX2: 2 rows, which fit, took 1.15 times as long as 8).
template <class Head, int Q>
inline void score_rows(const float* const* q, const TileRows& k, const TileRows* v, int head_dim, float* scores) {
  constexpr int R = Q == 1 ? 16 : Q == 4 ? 4 : 8;
  for (int i = 0; i < kTilePositions; i += 16) {
    V16 lanes[Q][16];
    for (int r = 0; r < 16; r += R) {
      V16 acc[Q * R];
      dot_rows<Head, Q, R>(q, k, v, i + r, head_dim, acc);
      KVASIR_UNROLL
      for (int j = 0; j < Q * R; ++j) lanes[j / R][r + j % R] = acc[j];
    }
    for (int n = 0; n < Q; ++n) store(scores + n * kTilePositions + i, fold16(lanes[n]));
  }
}

// Folds lanes j, j + kStep, j + 2 kStep, ... of the dots of Q queries with 16 P positions; kStep = 1 folds all lanes.
// `k` is transposed and begins at the first position.
template <int Q, int P, int kStep>
KVASIR_SIMD_FN void lane_sums(const float* const* q, const float* k, int head_dim, int j, V16* sums) {
  if constexpr (kStep == 16) {
    KVASIR_UNROLL
    for (int i = 0; i < Q * P; ++i) sums[i] = zero();
    for (int d = j; d < head_dim; d += 16) {
      V16 kv[P];
      KVASIR_UNROLL
      for (int p = 0; p < P; ++p) kv[p] = load(k + static_cast<int64_t>(d) * kTilePositions + 16 * p);
      KVASIR_UNROLL
      for (int i = 0; i < Q; ++i) {
        const V16 qd = set1(q[i][d]);
        KVASIR_UNROLL
        for (int p = 0; p < P; ++p) sums[i * P + p] = fma(qd, kv[p], sums[i * P + p]);
      }
    }
  } else {
    V16 others[Q * P];
    lane_sums<Q, P, 2 * kStep>(q, k, head_dim, j, sums);
    lane_sums<Q, P, 2 * kStep>(q, k, head_dim, j + kStep, others);
    KVASIR_UNROLL
    for (int i = 0; i < Q * P; ++i) sums[i] = sums[i] + others[i];
  }
}

// scores[q][64] before scaling. Skips the positions after the last one that the block attends to.
template <int Q>
inline void score_columns(const float* const* q, const float* k, uint64_t mask, int head_dim, float* scores) {
  for (int g = 0; g < 4 && mask >> (16 * g) != 0; g += kScoreVectors) {
    V16 sums[Q * kScoreVectors];
    lane_sums<Q, kScoreVectors, 1>(q, k + 16 * g, head_dim, 0, sums);
    for (int i = 0; i < Q * kScoreVectors; ++i)
      store(scores + i / kScoreVectors * kTilePositions + 16 * (g + i % kScoreVectors), sums[i]);
  }
}

// Bit i is row i of the g-th 16 rows of a tile.
inline uint32_t bits16(uint64_t mask, int g) { return static_cast<uint32_t>(mask >> (16 * g)) & 0xffffu; }

KVASIR_SIMD_FN V16 soft_cap_v(V16 x, float cap) { return set1(cap) * kvasir::tanh_v(x / set1(cap)); }

// Scales and caps one query's scores, in place.
inline void cap_scores(float* p, uint64_t mask, float scale, float cap) {
  for (int g = 0; g < 4; ++g)
    if (bits16(mask, g) != 0) store(p + 16 * g, soft_cap_v(load(p + 16 * g) * set1(scale), cap));
}

// The largest of one query's scores, after scaling.
inline float largest_score(const float* p, uint64_t mask, float scale) {
  const V16 minus_inf = set1(-__builtin_inff());
  V16 most = minus_inf;
  KVASIR_UNROLL
  for (int g = 0; g < 4; ++g)
    if (const uint32_t bits = bits16(mask, g); bits != 0)
      most = max(select(mask_bits(bits), load(p + 16 * g) * set1(scale), minus_inf), most);
  return largest_lane(most);
}
// Turns one query's scores into exponentials, in place, and returns their sum. Dead rows get 0, or stay unwritten and
// are never read.
inline float exponentials(float* p, uint64_t mask, float scale, float m) {
  V16 sum = zero();
  KVASIR_UNROLL
  for (int g = 0; g < 4; ++g) {
    const uint32_t bits = bits16(mask, g);
    if (bits == 0) continue;
    const V16 e = select(mask_bits(bits), kvasir::exp_v(load(p + 16 * g) * set1(scale) - set1(m)), zero());
    store(p + 16 * g, e);
    sum = sum + e;
  }
  return fold(sum);
}

// ---- weighing V -------------------------------------------------------------------------------------------------

// Channels [d, d + 16 N) of o[q] = sum over live rows, ascending, of p[q][i] * v_i; or only the first n channels, if n
// is less than one step of Head. Each query must attend to every row that the first does; it may attend to more.
template <class Head, int Q, int N>
inline void weigh_channels(const float* p, const TileRows& v, const uint64_t* mask, int d, int n, int head_dim,
                           float* o) {
  constexpr int kStep = Head::kStep;
  V16 acc[Q * N], vv[N];
  const auto channels = [&](int i) {
    KVASIR_UNROLL
    for (int c = 0; c < N; c += kStep / 16)
      if (n < kStep)
        Head::load_n(v.row(i), d, n, vv);
      else
        Head::load(v.row(i), d + 16 * c, vv + c);
  };
  const auto add = [&](int q, int i) {
    const V16 weight = set1(p[q * kTilePositions + i]);
    KVASIR_UNROLL
    for (int c = 0; c < N; ++c) acc[q * N + c] = fma(weight, vv[c], acc[q * N + c]);
  };
  KVASIR_UNROLL
  for (int i = 0; i < Q * N; ++i) acc[i] = zero();
  for (uint64_t bits = mask[0]; bits != 0; bits &= bits - 1) {
    const int i = __builtin_ctzll(bits);
    channels(i);
    KVASIR_UNROLL
    for (int c = 0; c < N; c += kStep / 16) v.fetch_next<Head>(i, d + 16 * c);
    KVASIR_UNROLL
    for (int q = 0; q < Q; ++q) add(q, i);
  }
  KVASIR_UNROLL
  for (int q = 1; q < Q; ++q)
    for (uint64_t bits = mask[q] & ~mask[0]; bits != 0; bits &= bits - 1) {
      channels(__builtin_ctzll(bits));
      add(q, __builtin_ctzll(bits));
    }
  KVASIR_UNROLL
  for (int q = 0; q < Q; ++q) KVASIR_UNROLL
  for (int c = 0; c < N; ++c)
    if (16 * c < n) store_n(o + q * head_dim + d + 16 * c, acc[q * N + c], part_of(n, 16 * c));
}

template <class Head, int Q>
inline void weigh(const float* p, const TileRows& v, const uint64_t* mask, int head_dim, float* o) {
  // accumulators take at most half of the registers
  constexpr int kFit = kVectors / 2 / Q, kFew = Head::kStep / 16, kMany = kFit >= 4 ? 4 : kFit > kFew ? kFit : kFew;
  int d = 0;
  for (; d + 16 * kMany <= head_dim; d += 16 * kMany)
    weigh_channels<Head, Q, kMany>(p, v, mask, d, 16 * kMany, head_dim, o);
  for (; d < head_dim; d += Head::kStep) weigh_channels<Head, Q, kFew>(p, v, mask, d, head_dim - d, head_dim, o);
}

// ---- merging tiles ----------------------------------------------------------------------------------------------

// Merges a tile into the running softmax state of one query: m, l and o[head_dim]. l is 0 before the first live tile,
// which is copied, and never after it: the largest exponential is 1, or a value is NaN.
inline void merge_tile(float mj, float lj, const float* oj, int head_dim, float* state) {
  float *m = state, *l = state + 1, *o = state + 2;
  if (*l == 0) {
    *m = mj;
    *l = lj;
    for (int d = 0; d < head_dim; ++d) o[d] = oj[d];
    return;
  }
  const float top = mj > *m ? mj : *m;
  float lanes[16];
  store(lanes, kvasir::exp_v(select(mask_bits(1), set1(*m), set1(mj)) - set1(top)));
  const V16 a = set1(lanes[0]), b = set1(lanes[1]);
  *l = first_lane(fma(set1(*l), a, set1(lj) * b));
  *m = top;
  int d = 0;
  for (; d + 16 <= head_dim; d += 16) store(o + d, fma(load(o + d), a, load(oj + d) * b));
  if (const int n = head_dim - d; n > 0) store_n(o + d, fma(load_n(o + d, n), a, load_n(oj + d, n) * b), n);
}

// Begins a state with a null score, which has no V.
inline void begin_with(float score, int head_dim, float* state) {
  state[0] = score;
  state[1] = 1.0f;
  for (int d = 0; d < head_dim; ++d) state[2 + d] = 0.0f;
}

inline void divide(const float* state, int head_dim, float* out) {
  const float *o = state + 2, l = state[1];
  int d = 0;
  for (; d + 16 <= head_dim; d += 16) store(out + d, load(o + d) / set1(l));
  if (const int n = head_dim - d; n > 0) store_n(out + d, load_n(o + d, n) / set1(l), n);
}

// ---- a tile, and all tiles --------------------------------------------------------------------------------------

// The parts of AttendArgs::scratch.
struct Scratch {
  explicit Scratch(const AttendArgs& a)
      : k(a.scratch),
        v(k + int64_t{kTilePositions} * a.head_dim),
        transposed_k(v + int64_t{kTilePositions} * a.head_dim),
        wide_v(transposed_k + int64_t{kTilePositions} * a.head_dim),
        p(wide_v + int64_t{kTilePositions} * a.head_dim),
        o(p + kAttendBlock * kTilePositions),
        states(o + int64_t{kAttendBlock} * a.head_dim) {}
  float *k, *v;         // [64, head_dim]: widened copies
  float* transposed_k;  // [head_dim, 64]
  float* wide_v;        // [64, head_dim]
  float* p;             // [kAttendBlock, 64]
  float* o;             // [kAttendBlock, head_dim]
  float* states;        // [tokens * group, 2 + head_dim]
};

/// A tile of one KV head, ready for its queries.
struct TileView {
  TileRows k, v;
  const float* transposed_k;  // [head_dim, 64] if there is more than one block of queries to share it, else null
};

// Fills `view` in place: returning a copy would wait for the stores that made it.
inline void set_view(const AttendArgs& a, int j, uint64_t live, const Scratch& scratch, TileView& view) {
  const Tile &tile = a.tiles[j], *next = j + 1 < a.tile_count ? &tile + 1 : nullptr;
  const float *own_k = tile.first == 0 ? a.first_k : nullptr, *own_v = tile.first == 0 ? a.first_v : nullptr;

  const auto set = [&](TileRows& rows, const float* own, const std::byte* stored, const std::byte* ahead, size_t stride,
                       RowForm form) {
    rows.base = own != nullptr ? bytes_of(own) : stored;
    rows.next = ahead != nullptr ? ahead : rows.base;
    rows.stride = own != nullptr ? static_cast<size_t>(a.head_dim) * 4 : stride;
    rows.form = own != nullptr ? RowForm::f32 : form;
  };
  set(view.k, own_k, tile.k + a.k_offset, next != nullptr ? next->k + a.k_offset : nullptr, tile.k_stride, a.k_form);
  set(view.v, own_v, tile.v + a.v_offset, next != nullptr ? next->v + a.v_offset : nullptr, tile.v_stride, a.v_form);
  if (~live != 0 || !has_head(view.k.form)) widen_rows(view.k, live, a.decode_k, a.head_dim, scratch.k);
  if (~live != 0 || !has_head(view.v.form)) widen_rows(view.v, live, a.decode_v, a.head_dim, scratch.v);
  view.transposed_k = nullptr;
  if (a.tokens * a.group <= kAttendBlock) return;
  with_head(view.k.form, [&](auto head) { transpose_rows<decltype(head)>(view.k, a.head_dim, scratch.transposed_k); });
  view.transposed_k = scratch.transposed_k;
  if (view.v.form != RowForm::f32) widen_rows(view.v, live, nullptr, a.head_dim, scratch.wide_v);
}

// Computes m, l and o of Q queries against one tile, each query on its own.
template <int Q>
inline void attend_block(const AttendArgs& a, const TileView& view, const float* const* q, const uint64_t* mask,
                         const Scratch& scratch, float* m, float* l) {
  uint64_t any = 0;
  bool differ = false;  // whether a query lacks a row of the first one's, or sees more rows before its last
  for (int i = 0; i < Q; ++i) {
    const uint64_t more = mask[i] & ~mask[0];
    any |= mask[i];
    differ |= (mask[0] & ~mask[i]) != 0 || (more & (~more + 1)) < (more != 0 ? mask[0] : 0);
  }
  if (view.transposed_k != nullptr)
    score_columns<Q>(q, view.transposed_k, any, a.head_dim, scratch.p);
  else
    with_head(view.k.form, [&](auto head) {
      const TileRows* v = view.v.form == view.k.form ? &view.v : nullptr;
      score_rows<decltype(head), Q>(q, view.k, v, a.head_dim, scratch.p);
    });
  const float scale = a.cap > 0 ? 1.0f : a.scale;
  for (int i = 0; a.cap > 0 && i < Q; ++i) cap_scores(scratch.p + i * kTilePositions, mask[i], a.scale, a.cap);
  // Each step runs for all queries before the next step: a single query is a chain of dependent operations.
  for (int i = 0; i < Q; ++i) m[i] = largest_score(scratch.p + i * kTilePositions, mask[i], scale);
  for (int i = 0; i < Q; ++i) l[i] = exponentials(scratch.p + i * kTilePositions, mask[i], scale, m[i]);
  with_head(view.v.form, [&](auto head) {
    if (!differ) return weigh<decltype(head), Q>(scratch.p, view.v, mask, a.head_dim, scratch.o);
    for (int i = 0; i < Q; ++i)  // at the beginning of a window
      weigh<decltype(head), 1>(scratch.p + i * kTilePositions, view.v, mask + i, a.head_dim,
                               scratch.o + static_cast<int64_t>(i) * a.head_dim);
  });
}

// Computes all queries against one tile. Calls merge(query, m, l, o) for each query that attends to any of it.
template <class F>
inline void attend_one_tile(const AttendArgs& a, int j, const Scratch& scratch, F&& merge) {
  const Tile& tile = a.tiles[j];
  int first = position_of(a, 0), last = first;
  for (int t = 1; t < a.tokens; ++t) {
    const int pos = position_of(a, t);
    first = pos < first ? pos : first;
    last = pos > last ? pos : last;
  }
  const uint64_t live = tile.live & kvasir::seen_rows(tile.first, first, last, a.window, a.sinks);
  if (live == 0) return;
  TileView view;
  set_view(a, j, live, scratch, view);
  const int queries = a.tokens * a.group;
  for (int n = 0, t = 0, h = 0; n < queries; n += kAttendBlock) {
    const int count = queries - n < kAttendBlock ? queries - n : kAttendBlock;
    const float* q[kAttendBlock];
    uint64_t mask[kAttendBlock], any = 0;
    float m[kAttendBlock], l[kAttendBlock];
    for (int i = 0; i < count; ++i) {
      const int pos = position_of(a, t);
      q[i] = query_of(a, t, h);
      any |= mask[i] = live & kvasir::seen_rows(tile.first, pos, pos, a.window, a.sinks);
      if (++h == a.group) h = 0, ++t;
    }
    if (any == 0) continue;
    switch (count) {
      case 1:
        attend_block<1>(a, view, q, mask, scratch, m, l);
        break;
      case 2:
        attend_block<2>(a, view, q, mask, scratch, m, l);
        break;
      case 3:
        attend_block<3>(a, view, q, mask, scratch, m, l);
        break;
      default:
        attend_block<kAttendBlock>(a, view, q, mask, scratch, m, l);
        break;
    }
    for (int i = 0; i < count; ++i)
      if (mask[i] != 0) merge(n + i, m[i], l[i], scratch.o + static_cast<int64_t>(i) * a.head_dim);
  }
}

void attend(const AttendArgs& a) {
  const Scratch scratch(a);
  const int64_t stride = a.head_dim + 2;
  float* const states = a.states != nullptr ? a.states : scratch.states;
  for (int query = 0; !a.begun && query < a.tokens * a.group; ++query)
    if (a.null_scores != nullptr)
      begin_with(a.null_scores[query % a.group], a.head_dim, states + query * stride);
    else
      states[query * stride + 1] = 0;
  for (int j = 0; j < a.tile_count; ++j)
    attend_one_tile(a, j, scratch, [&](int query, float m, float l, const float* o) {
      merge_tile(m, l, o, a.head_dim, states + query * stride);
    });
  for (int query = 0; a.ends && query < a.tokens * a.group; ++query)
    divide(states + query * stride, a.head_dim, out_of(a, query / a.group, query % a.group));
}

void attend_tile(const AttendArgs& a, float* states) {
  attend_one_tile(a, 0, Scratch(a), [&](int query, float m, float l, const float* o) {
    float* state = states + query * int64_t{a.head_dim + 2};
    state[1] = 0;
    merge_tile(m, l, o, a.head_dim, state);
  });
}

// Merges a tile for all queries before the next tile: a single query is a chain of dependent exponentials.
void merge_tiles(const MergeArgs& a) {
  const int64_t stride = a.head_dim + 2;
  for (int j = 1; j < a.tile_count; ++j)
    for (int query = 0; query < a.queries; ++query) {
      const float* one = a.states + (int64_t{j} * a.queries + query) * stride;
      merge_tile(one[0], one[1], one + 2, a.head_dim, a.states + query * stride);
    }
  for (int query = 0; query < a.queries; ++query)
    divide(a.states + query * stride, a.head_dim, a.out + static_cast<int64_t>(query) * a.head_dim);
}

}  // namespace
}  // namespace KVASIR_SIMD_NS
