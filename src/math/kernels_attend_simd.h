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

// From so many queries on, K is transposed first: then sixteen lanes are sixteen positions and no sum is folded.
constexpr int kManyQueries = 8;

// ---- the rows of one tile for one KV head -----------------------------------------------------------------------

// As f32. Dead rows point at a live one: they are computed and thrown away, unread.
struct TileRows {
  const float* k[kTilePositions];
  const float* v[kTilePositions];
  const float* transposed_k;  // [head_dim][64], or null
};

template <class Rows>
inline void widen(const std::byte* row, float* dst, int n) {
  int d = 0;
  for (; d + 16 <= n; d += 16) store(dst + d, Rows::at(row, d));
  if (d < n) store_n(dst + d, Rows::at_n(row, d, n - d), n - d);
}

inline void decode_row(const std::byte* row, kvasir::RowForm form, kvasir::DecodeFn decode, float* dst, int n) {
  switch (form) {
    case RowForm::f16:
      return widen<RowsF16>(row, dst, n);
    case RowForm::bf16:
      return widen<RowsBF16>(row, dst, n);
    default:
      return decode(row, dst, n);
  }
}

inline void point_rows(const std::byte* base, size_t stride, uint64_t live, int head_dim, RowForm form,
                       kvasir::DecodeFn decode, float* decoded, const float** rows) {
  const int first = __builtin_ctzll(live);
  for (uint64_t bits = live; bits != 0; bits &= bits - 1) {
    const int i = __builtin_ctzll(bits);
    const std::byte* row = base + static_cast<size_t>(i) * stride;
    rows[i] = reinterpret_cast<const float*>(row);
    if (form != RowForm::f32) {
      float* dst = decoded + static_cast<int64_t>(i) * head_dim;
      decode_row(row, form, decode, dst, head_dim);
      rows[i] = dst;
    }
  }
  for (int i = 0; i < kTilePositions; ++i)
    if ((live >> i & 1) == 0) rows[i] = rows[first];
}

// out[d][i] = k[i][d].
inline void transpose_rows(const float* const* k, int head_dim, float* out) {
  for (int i = 0; i < kTilePositions; i += 16)
    for (int d = 0; d < head_dim; d += 16) {
      const int n = head_dim - d < 16 ? head_dim - d : 16;
      V16 rows[16], columns[16];
      KVASIR_UNROLL
      for (int r = 0; r < 16; ++r) rows[r] = n == 16 ? load(k[i + r] + d) : load_n(k[i + r] + d, n);
      transpose16(rows, columns);
      for (int c = 0; c < n; ++c) store(out + static_cast<int64_t>(d + c) * kTilePositions + i, columns[c]);
    }
}

// ---- scores -----------------------------------------------------------------------------------------------------

// Sixteen scores: dot(q, k_i) for 16 rows, folded together.
inline V16 score16(const float* q, const float* const* k, int head_dim) {
  V16 acc[16];
  KVASIR_UNROLL
  for (int i = 0; i < 16; ++i) acc[i] = zero();
  int d = 0;
  for (; d + 16 <= head_dim; d += 16) {
    const V16 qv = load(q + d);
    KVASIR_UNROLL
    for (int i = 0; i < 16; ++i) acc[i] = fma(qv, load(k[i] + d), acc[i]);
  }
  if (const int n = head_dim - d; n > 0) {
    const V16 qv = load_n(q + d, n);
    KVASIR_UNROLL
    for (int i = 0; i < 16; ++i) acc[i] = fma_n(qv, load_n(k[i] + d, n), acc[i], n);
  }
  return fold16(acc);
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

inline uint32_t bits16(uint64_t mask, int group) { return static_cast<uint32_t>(mask >> (16 * group)) & 0xffffu; }

// scores[q][64], before the scale; sixteens without a live row are left out. `mask` is the block's largest.
template <int Q>
inline void score_block(const float* const* q, const TileRows& rows, uint64_t mask, int head_dim, float* scores) {
  if (rows.transposed_k == nullptr) {
    for (int i = 0; i < Q; ++i)
      for (int g = 0; g < 4; ++g)
        if (bits16(mask, g) != 0) store(scores + i * kTilePositions + 16 * g, score16(q[i], rows.k + 16 * g, head_dim));
    return;
  }
  for (int g = 0; g < 4; g += kScoreVectors) {
    if (mask >> (16 * g) == 0) return;
    V16 sums[Q * kScoreVectors];
    lane_sums<Q, kScoreVectors, 1>(q, rows.transposed_k + 16 * g, head_dim, 0, sums);
    for (int i = 0; i < Q; ++i)
      for (int p = 0; p < kScoreVectors; ++p)
        store(scores + i * kTilePositions + 16 * (g + p), sums[i * kScoreVectors + p]);
  }
}

// Scores of one query to exponentials in place; their maximum and sum. Dead rows get 0, which is never read.
inline void softmax_tile(float* p, uint64_t mask, float scale, float* m, float* l) {
  const V16 minus_inf = set1(-__builtin_inff());
  V16 s[4], most = minus_inf;
  KVASIR_UNROLL
  for (int g = 0; g < 4; ++g) {
    const uint32_t bits = bits16(mask, g);
    s[g] = bits != 0 ? load(p + 16 * g) * set1(scale) : minus_inf;
    most = max(select(mask_bits(bits), s[g], minus_inf), most);
  }
  *m = largest_lane(most);
  V16 sum = zero();
  KVASIR_UNROLL
  for (int g = 0; g < 4; ++g) {
    const uint32_t bits = bits16(mask, g);
    if (bits == 0) continue;
    const V16 e = select(mask_bits(bits), kvasir::exp_v(s[g] - set1(*m)), zero());
    store(p + 16 * g, e);
    sum = sum + e;
  }
  *l = fold(sum);
}

// ---- weighing V -------------------------------------------------------------------------------------------------

// Channels [d, d + 16 N) of o[q] = sum over live rows, ascending, of p[q][i] * v_i; with N = 1 the first n of them.
// A later query of a block sees what an earlier one does, and then perhaps more.
template <int Q, int N>
inline void weigh_channels(const float* p, const float* const* v, const uint64_t* mask, int d, int n, int head_dim,
                           float* o) {
  const auto row = [&](int i, int c) { return n == 16 ? load(v[i] + d + 16 * c) : load_n(v[i] + d, n); };
  V16 acc[Q * N];
  KVASIR_UNROLL
  for (int i = 0; i < Q * N; ++i) acc[i] = zero();
  for (uint64_t bits = mask[0]; bits != 0; bits &= bits - 1) {
    const int i = __builtin_ctzll(bits);
    V16 vv[N];
    KVASIR_UNROLL
    for (int c = 0; c < N; ++c) vv[c] = row(i, c);
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
      for (int c = 0; c < N; ++c) acc[q * N + c] = fma(set1(p[q * kTilePositions + i]), row(i, c), acc[q * N + c]);
    }
  KVASIR_UNROLL
  for (int q = 0; q < Q; ++q) KVASIR_UNROLL
  for (int c = 0; c < N; ++c) store_n(o + q * head_dim + d + 16 * c, acc[q * N + c], n);
}

template <int Q>
inline void weigh(const float* p, const float* const* v, const uint64_t* mask, int head_dim, float* o) {
  constexpr int kWide = 16 * kWeighVectors;
  int d = 0;
  for (; d + kWide <= head_dim; d += kWide) weigh_channels<Q, kWeighVectors>(p, v, mask, d, 16, head_dim, o);
  for (; d < head_dim; d += 16) weigh_channels<Q, 1>(p, v, mask, d, head_dim - d < 16 ? head_dim - d : 16, head_dim, o);
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
        p(transposed_k + int64_t{kTilePositions} * a.head_dim),
        o(p + kAttendBlock * kTilePositions),
        states(o + int64_t{kAttendBlock} * a.head_dim) {}
  float *k, *v, *transposed_k;  // [64][head_dim] twice, [head_dim][64]
  float* p;                     // [kAttendBlock][64]
  float* o;                     // [kAttendBlock][head_dim]
  float* states;                // [tokens * group][2 + head_dim]
};

inline TileRows read_tile(const AttendArgs& a, const Tile& tile, uint64_t live, const Scratch& scratch) {
  TileRows rows;
  point_rows(tile.k + a.k_offset, tile.k_stride, live, a.head_dim, a.k_form, a.decode_k, scratch.k, rows.k);
  point_rows(tile.v + a.v_offset, tile.v_stride, live, a.head_dim, a.v_form, a.decode_v, scratch.v, rows.v);
  rows.transposed_k = nullptr;
  if (a.tokens * a.group >= kManyQueries) {
    transpose_rows(rows.k, a.head_dim, scratch.transposed_k);
    rows.transposed_k = scratch.transposed_k;
  }
  return rows;
}

// Q queries from the n-th on against one tile, each alone: m, l and o.
template <int Q>
inline void attend_block(const AttendArgs& a, const TileRows& rows, int n, const uint64_t* mask, const Scratch& scratch,
                         float* m, float* l) {
  const float* q[Q];
  for (int i = 0; i < Q; ++i)
    q[i] = a.q + (n + i) / a.group * a.q_stride + static_cast<int64_t>((n + i) % a.group) * a.head_dim;
  score_block<Q>(q, rows, mask[Q - 1], a.head_dim, scratch.p);
  for (int i = 0; i < Q; ++i)
    if (mask[i] != 0) softmax_tile(scratch.p + i * kTilePositions, mask[i], a.scale, m + i, l + i);
  weigh<Q>(scratch.p, rows.v, mask, a.head_dim, scratch.o);
}

// All queries against one tile. merge(query, m, l, o) takes what each query that sees any of it gets.
template <class F>
inline void attend_one_tile(const AttendArgs& a, const Tile& tile, const Scratch& scratch, F&& merge) {
  const uint64_t live = tile.live & kvasir::live_below(tile.first, a.first_pos + a.tokens);
  if (live == 0) return;
  const TileRows rows = read_tile(a, tile, live, scratch);
  const int queries = a.tokens * a.group;
  for (int n = 0; n < queries; n += kAttendBlock) {
    const int count = queries - n < kAttendBlock ? queries - n : kAttendBlock;
    uint64_t mask[kAttendBlock];
    float m[kAttendBlock], l[kAttendBlock];
    for (int i = 0; i < count; ++i)
      mask[i] = live & kvasir::live_below(tile.first, a.first_pos + (n + i) / a.group + 1);
    if (mask[count - 1] == 0) continue;
    switch (count) {
      case 1:
        attend_block<1>(a, rows, n, mask, scratch, m, l);
        break;
      case 2:
        attend_block<2>(a, rows, n, mask, scratch, m, l);
        break;
      case 3:
        attend_block<3>(a, rows, n, mask, scratch, m, l);
        break;
      default:
        attend_block<kAttendBlock>(a, rows, n, mask, scratch, m, l);
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
    attend_one_tile(a, a.tiles[j], scratch, [&](int query, float m, float l, const float* o) {
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
  attend_one_tile(a, a.tiles[0], Scratch(a), [&](int query, float m, float l, const float* o) {
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
