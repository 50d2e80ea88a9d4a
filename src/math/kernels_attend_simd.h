// Attention over tiles on V16; part of kernels_simd.h, which says how it is compiled. A query is one head of one token;
// queries are taken in blocks that share the loads of K and V.
#pragma once

#include "math/functions.h"
#include "math/kernels_matmul_simd.h"

namespace KVASIR_SIMD_NS {
namespace {

using kvasir::AttendArgs;
using kvasir::kAttendBlock;
using kvasir::kTilePositions;
using kvasir::MergeArgs;
using kvasir::Tile;

// ---- the rows of one tile for one KV head -----------------------------------------------------------------------

// Row i of a tile, all readable: where they are stored, or a copy if some are dead. Dead ones are computed and thrown
// away. `next` is where the rows of the tile that comes next begin, which are fetched meanwhile (these again if there
// is none): heads lie side by side, a stride that no hardware guesses.
struct TileRows {
  const std::byte *base, *next;
  size_t stride;
  RowForm form;

  const std::byte* row(int i) const { return base + static_cast<size_t>(i) * stride; }
  void fetch_next(int i, int byte) const { prefetch(next + static_cast<size_t>(i) * stride + byte); }
};

template <class Rows>
inline void copy_wide(const std::byte* row, float* dst, int n) {
  int d = 0;
  for (; d + 16 <= n; d += 16) store(dst + d, Rows::at(row, d));
  if (d < n) store_n(dst + d, Rows::at_n(row, d, n - d), n - d);
}

// f(Rows) with the loader of a form.
template <class F>
inline void with_rows(RowForm form, F&& f) {
  if (form == RowForm::f16)
    f(RowsF16{});
  else if (form == RowForm::bf16)
    f(RowsBF16{});
  else
    f(RowsF32{});
}

// room: [64][head_dim] floats.
inline TileRows rows_of(const std::byte* base, size_t stride, const std::byte* next, RowForm form,
                        kvasir::DecodeFn decode, uint64_t live, int head_dim, float* room) {
  const bool known = form == RowForm::f32 || form == RowForm::f16 || form == RowForm::bf16;
  if (known && ~live == 0) return {base, next != nullptr ? next : base, stride, form};
  const size_t bytes = static_cast<size_t>(head_dim) * (known && form != RowForm::f32 ? 2 : 4);
  auto* copy = reinterpret_cast<std::byte*>(room);
  for (uint64_t bits = live; bits != 0; bits &= bits - 1) {
    const auto i = static_cast<size_t>(__builtin_ctzll(bits));
    if (known)
      std::memcpy(copy + i * bytes, base + i * stride, bytes);
    else
      decode(base + i * stride, room + i * static_cast<size_t>(head_dim), head_dim);
  }
  return {copy, copy, bytes, known ? form : RowForm::f32};
}

// out[d][i] = row i, channel d.
template <class Rows>
inline void transpose_rows(const TileRows& rows, int head_dim, float* out) {
  for (int i = 0; i < kTilePositions; i += 16)
    for (int d = 0; d < head_dim; d += 16) {
      const int n = head_dim - d < 16 ? head_dim - d : 16;
      V16 lines[16], columns[16];
      KVASIR_UNROLL
      for (int r = 0; r < 16; ++r) {
        lines[r] = n == 16 ? Rows::at(rows.row(i + r), d) : Rows::at_n(rows.row(i + r), d, n);
        rows.fetch_next(i + r, d * Rows::kBytes);
      }
      transpose16(lines, columns);
      for (int c = 0; c < n; ++c) store(out + static_cast<int64_t>(d + c) * kTilePositions + i, columns[c]);
    }
}

// ---- scores -----------------------------------------------------------------------------------------------------

// scores[q][64], before the scale, of Q queries that share the loads of R rows; sums are folded sixteen at a time.
template <class Rows, int Q>
inline void score_rows(const float* const* q, const TileRows& k, int head_dim, float* scores) {
  constexpr int R = Q == 1 ? 16 : Q == 4 ? 4 : 8;
  for (int i = 0; i < kTilePositions; i += R) {
    V16 acc[Q * R];
    KVASIR_UNROLL
    for (int j = 0; j < Q * R; ++j) acc[j] = zero();
    int d = 0;
    for (; d + 16 <= head_dim; d += 16) {
      V16 qv[Q];
      KVASIR_UNROLL
      for (int n = 0; n < Q; ++n) qv[n] = load(q[n] + d);
      KVASIR_UNROLL
      for (int r = 0; r < R; ++r) {
        const V16 kv = Rows::at(k.row(i + r), d);
        k.fetch_next(i + r, d * Rows::kBytes);
        KVASIR_UNROLL
        for (int n = 0; n < Q; ++n) acc[n * R + r] = fma(qv[n], kv, acc[n * R + r]);
      }
    }
    if (const int tail = head_dim - d; tail > 0) KVASIR_UNROLL
    for (int j = 0; j < Q * R; ++j)
      acc[j] = fma_n(load_n(q[j / R] + d, tail), Rows::at_n(k.row(i + j % R), d, tail), acc[j], tail);
    float sums[Q * R];
    fold_all<Q * R>(acc, sums);
    for (int j = 0; j < Q * R; ++j) scores[j / R * kTilePositions + i + j % R] = sums[j];
  }
}

// What lanes j, j + kStep, j + 2 kStep, ... of Q dots with each of 16 P positions are folded to; kStep = 1 is all.
// k: transposed, at the first of the positions.
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

// scores[q][64], before the scale; positions past the last that the block sees are left out.
template <int Q>
inline void score_columns(const float* const* q, const float* k, uint64_t mask, int head_dim, float* scores) {
  for (int g = 0; g < 4 && mask >> (16 * g) != 0; g += kScoreVectors) {
    V16 sums[Q * kScoreVectors];
    lane_sums<Q, kScoreVectors, 1>(q, k + 16 * g, head_dim, 0, sums);
    for (int i = 0; i < Q * kScoreVectors; ++i)
      store(scores + i / kScoreVectors * kTilePositions + 16 * (g + i % kScoreVectors), sums[i]);
  }
}

// Scores of one query to exponentials in place; their maximum and sum. Dead rows get 0, which is never read.
inline void softmax_tile(float* p, uint64_t mask, float scale, float* m, float* l) {
  const auto bits16 = [mask](int g) { return static_cast<uint32_t>(mask >> (16 * g)) & 0xffffu; };
  const V16 minus_inf = set1(-__builtin_inff());
  V16 s[4], most = minus_inf;
  KVASIR_UNROLL
  for (int g = 0; g < 4; ++g) {
    const uint32_t bits = bits16(g);
    s[g] = bits != 0 ? load(p + 16 * g) * set1(scale) : minus_inf;
    most = max(select(mask_bits(bits), s[g], minus_inf), most);
  }
  *m = largest_lane(most);
  V16 sum = zero();
  KVASIR_UNROLL
  for (int g = 0; g < 4; ++g) {
    const uint32_t bits = bits16(g);
    if (bits == 0) continue;
    const V16 e = select(mask_bits(bits), kvasir::exp_v(s[g] - set1(*m)), zero());
    store(p + 16 * g, e);
    sum = sum + e;
  }
  *l = fold(sum);
}

// ---- weighing V -------------------------------------------------------------------------------------------------

// Channels [d, d + 16 N) of o[q] = sum over live rows, ascending, of p[q][i] * v_i; with N = 1 the first n of them.
// A later query sees what an earlier one does, and then perhaps more.
template <class Rows, int Q, int N>
inline void weigh_channels(const float* p, const TileRows& v, const uint64_t* mask, int d, int n, int head_dim,
                           float* o) {
  const auto channels = [&](const std::byte* row, int c) {
    return n == 16 ? Rows::at(row, d + 16 * c) : Rows::at_n(row, d, n);
  };
  V16 acc[Q * N];
  KVASIR_UNROLL
  for (int i = 0; i < Q * N; ++i) acc[i] = zero();
  for (uint64_t bits = mask[0]; bits != 0; bits &= bits - 1) {
    const int i = __builtin_ctzll(bits);
    V16 vv[N];
    KVASIR_UNROLL
    for (int c = 0; c < N; ++c) {
      vv[c] = channels(v.row(i), c);
      if (c * 16 * Rows::kBytes % 64 == 0) v.fetch_next(i, (d + 16 * c) * Rows::kBytes);
    }
    KVASIR_UNROLL
    for (int q = 0; q < Q; ++q) {
      const V16 weight = set1(p[q * kTilePositions + i]);
      KVASIR_UNROLL
      for (int c = 0; c < N; ++c) acc[q * N + c] = fma(weight, vv[c], acc[q * N + c]);
    }
  }
  KVASIR_UNROLL
  for (int q = 1; q < Q; ++q)
    for (uint64_t bits = mask[q] & ~mask[0]; bits != 0; bits &= bits - 1) {
      const int i = __builtin_ctzll(bits);
      KVASIR_UNROLL
      for (int c = 0; c < N; ++c)
        acc[q * N + c] = fma(set1(p[q * kTilePositions + i]), channels(v.row(i), c), acc[q * N + c]);
    }
  KVASIR_UNROLL
  for (int q = 0; q < Q; ++q) KVASIR_UNROLL
  for (int c = 0; c < N; ++c) store_n(o + q * head_dim + d + 16 * c, acc[q * N + c], n);
}

template <class Rows, int Q>
inline void weigh(const float* p, const TileRows& v, const uint64_t* mask, int head_dim, float* o) {
  constexpr int kWide = 16 * kWeighVectors;
  int d = 0;
  for (; d + kWide <= head_dim; d += kWide) weigh_channels<Rows, Q, kWeighVectors>(p, v, mask, d, 16, head_dim, o);
  for (; d < head_dim; d += 16)
    weigh_channels<Rows, Q, 1>(p, v, mask, d, head_dim - d < 16 ? head_dim - d : 16, head_dim, o);
}

// ---- merging tiles ----------------------------------------------------------------------------------------------

// Running softmax state of one query: m, l and o[head_dim]; the first live tile is copied.
inline void merge_tile(float mj, float lj, const float* oj, int head_dim, bool first, float* state) {
  float *m = state, *l = state + 1, *o = state + 2;
  if (first) {
    *m = mj;
    *l = lj;
    for (int d = 0; d < head_dim; ++d) o[d] = oj[d];
    return;
  }
  const float top = mj > *m ? mj : *m;
  const V16 a = kvasir::exp_v(set1(*m) - set1(top)), b = kvasir::exp_v(set1(mj) - set1(top));
  *l = first_lane(fma(set1(*l), a, set1(lj) * b));
  *m = top;
  int d = 0;
  for (; d + 16 <= head_dim; d += 16) store(o + d, fma(load(o + d), a, load(oj + d) * b));
  if (const int n = head_dim - d; n > 0) store_n(o + d, fma(load_n(o + d, n), a, load_n(oj + d, n) * b), n);
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
  float *k, *v;         // [64][head_dim]: copies as stored
  float* transposed_k;  // [head_dim][64]
  float* wide_v;        // [64][head_dim]
  float* p;             // [kAttendBlock][64]
  float* o;             // [kAttendBlock][head_dim]
  float* states;        // [tokens * group][2 + head_dim]
};

/// A tile for one KV head, ready for its queries.
struct TileView {
  TileRows k, v;
  const float* transposed_k;  // [head_dim][64] where a second block of queries makes that worth while, or null
};

inline TileView view_of(const AttendArgs& a, int j, uint64_t live, const Scratch& scratch) {
  const Tile &tile = a.tiles[j], *next = j + 1 < a.tile_count ? &tile + 1 : nullptr;
  const size_t wide = static_cast<size_t>(a.head_dim) * 4;
  const bool own_k = a.first_k != nullptr && tile.first == 0, own_v = a.first_v != nullptr && tile.first == 0;
  TileView view{rows_of(own_k ? bytes_of(a.first_k) : tile.k + a.k_offset, own_k ? wide : tile.k_stride,
                        next != nullptr ? next->k + a.k_offset : nullptr, own_k ? RowForm::f32 : a.k_form, a.decode_k,
                        live, a.head_dim, scratch.k),
                rows_of(own_v ? bytes_of(a.first_v) : tile.v + a.v_offset, own_v ? wide : tile.v_stride,
                        next != nullptr ? next->v + a.v_offset : nullptr, own_v ? RowForm::f32 : a.v_form, a.decode_v,
                        live, a.head_dim, scratch.v),
                nullptr};
  if (a.tokens * a.group <= kAttendBlock) return view;
  with_rows(view.k.form, [&](auto rows) { transpose_rows<decltype(rows)>(view.k, a.head_dim, scratch.transposed_k); });
  view.transposed_k = scratch.transposed_k;
  if (view.v.form == RowForm::f32) return view;
  with_rows(view.v.form, [&](auto rows) {
    for (int i = 0; i < kTilePositions; ++i)
      copy_wide<decltype(rows)>(view.v.row(i), scratch.wide_v + int64_t{i} * a.head_dim, a.head_dim);
  });
  view.v = {bytes_of(scratch.wide_v), bytes_of(scratch.wide_v), wide, RowForm::f32};
  return view;
}

// Q queries from the n-th on against one tile, each alone: m, l and o.
template <int Q>
inline void attend_block(const AttendArgs& a, const TileView& view, int n, const uint64_t* mask, const Scratch& scratch,
                         float* m, float* l) {
  const float* q[Q];
  for (int i = 0; i < Q; ++i)
    q[i] = a.q + (n + i) / a.group * a.q_stride + static_cast<int64_t>((n + i) % a.group) * a.head_dim;
  uint64_t any = 0, less = 0;  // seen by one of them; by the first and not by all
  for (int i = 0; i < Q; ++i) {
    any |= mask[i];
    less |= mask[0] & ~mask[i];
  }
  if (view.transposed_k != nullptr)
    score_columns<Q>(q, view.transposed_k, any, a.head_dim, scratch.p);
  else
    with_rows(view.k.form, [&](auto rows) { score_rows<decltype(rows), Q>(q, view.k, a.head_dim, scratch.p); });
  for (int i = 0; i < Q; ++i)
    if (mask[i] != 0) softmax_tile(scratch.p + i * kTilePositions, mask[i], a.scale, m + i, l + i);
  with_rows(view.v.form, [&](auto rows) {
    if (less == 0) return weigh<decltype(rows), Q>(scratch.p, view.v, mask, a.head_dim, scratch.o);
    for (int i = 0; i < Q; ++i)  // where a window begins
      weigh<decltype(rows), 1>(scratch.p + i * kTilePositions, view.v, mask + i, a.head_dim,
                               scratch.o + static_cast<int64_t>(i) * a.head_dim);
  });
}

// All queries against one tile. merge(query, m, l, o) takes what each query that sees any of it gets.
template <class F>
inline void attend_one_tile(const AttendArgs& a, int j, const Scratch& scratch, F&& merge) {
  const Tile& tile = a.tiles[j];
  const int first = a.first_pos;
  const uint64_t live = tile.live & kvasir::seen_rows(tile.first, first, first + a.tokens - 1, a.window, a.sinks);
  if (live == 0) return;
  const TileView view = view_of(a, j, live, scratch);
  const int queries = a.tokens * a.group;
  for (int n = 0; n < queries; n += kAttendBlock) {
    const int count = queries - n < kAttendBlock ? queries - n : kAttendBlock;
    uint64_t mask[kAttendBlock], any = 0;
    float m[kAttendBlock], l[kAttendBlock];
    for (int i = 0; i < count; ++i) {
      const int pos = first + (n + i) / a.group;
      any |= mask[i] = live & kvasir::seen_rows(tile.first, pos, pos, a.window, a.sinks);
    }
    if (any == 0) continue;
    switch (count) {
      case 1:
        attend_block<1>(a, view, n, mask, scratch, m, l);
        break;
      case 2:
        attend_block<2>(a, view, n, mask, scratch, m, l);
        break;
      case 3:
        attend_block<3>(a, view, n, mask, scratch, m, l);
        break;
      default:
        attend_block<kAttendBlock>(a, view, n, mask, scratch, m, l);
        break;
    }
    for (int i = 0; i < count; ++i)
      if (mask[i] != 0) merge(n + i, m[i], l[i], scratch.o + static_cast<int64_t>(i) * a.head_dim);
  }
}

void attend(const AttendArgs& a) {
  const Scratch scratch(a);
  const int64_t stride = a.head_dim + 2;
  uint64_t seen = 0;  // tokens that have met a live tile
  for (int j = 0; j < a.tile_count; ++j) {
    uint64_t now = 0;
    attend_one_tile(a, j, scratch, [&](int query, float m, float l, const float* o) {
      const uint64_t token = uint64_t{1} << (query / a.group);
      merge_tile(m, l, o, a.head_dim, (seen & token) == 0, scratch.states + query * stride);
      now |= token;
    });
    seen |= now;
  }
  for (int query = 0; query < a.tokens * a.group; ++query)
    divide(scratch.states + query * stride, a.head_dim,
           a.out + query / a.group * a.out_stride + static_cast<int64_t>(query % a.group) * a.head_dim);
}

void attend_tile(const AttendArgs& a, float* states) {
  attend_one_tile(a, 0, Scratch(a), [&](int query, float m, float l, const float* o) {
    merge_tile(m, l, o, a.head_dim, true, states + query * int64_t{a.head_dim + 2});
  });
}

void merge_tiles(const MergeArgs& a) {
  const int64_t stride = a.head_dim + 2;
  for (int query = 0; query < a.queries; ++query) {
    float* all = a.states + query * stride;
    for (int j = 1; j < a.tile_count; ++j) {
      const float* one = all + j * a.queries * stride;
      merge_tile(one[0], one[1], one + 2, a.head_dim, false, all);
    }
    divide(all, a.head_dim, a.out + static_cast<int64_t>(query) * a.head_dim);
  }
}

}  // namespace
}  // namespace KVASIR_SIMD_NS
