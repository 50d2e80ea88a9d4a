// Attention over tiles on V16; part of kernels_simd.h, which says how it is compiled.
#pragma once

#include "math/functions.h"
#include "math/kernels_matmul_simd.h"

namespace KVASIR_SIMD_NS {
namespace {

using kvasir::AttendArgs;
using kvasir::kTilePositions;
using kvasir::Tile;

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
  KVASIR_UNROLL
  for (int g = 0; g < 4; ++g) {
    const uint32_t bits = static_cast<uint32_t>(mask >> (16 * g)) & 0xffffu;
    s[g] = bits != 0 ? score16(q, k + 16 * g, head_dim) * set1(scale) : minus_inf;
    most = max(select(mask_bits(bits), s[g], minus_inf), most);
  }
  *m = largest(most);
  V16 sum = zero();
  KVASIR_UNROLL
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
    KVASIR_UNROLL
    for (int h = 0; h < H; ++h) acc[h] = zero();
    for (uint64_t bits = mask; bits != 0; bits &= bits - 1) {
      const int i = __builtin_ctzll(bits);
      const V16 vv = n == 16 ? load(v[i] + d) : load_n(v[i] + d, n);
      KVASIR_UNROLL
      for (int h = 0; h < H; ++h) acc[h] = fma(set1(p[h * kTilePositions + i]), vv, acc[h]);
    }
    KVASIR_UNROLL
    for (int h = 0; h < H; ++h) store_n(o + h * head_dim + d, acc[h], n);
  }
}

// The same with 64 channels in registers at once, for the head sizes that are multiples of 64.
template <int H>
inline void weigh_rows64(const float* p, const float* const* v, uint64_t mask, int head_dim, float* o) {
  for (int d = 0; d < head_dim; d += 64) {
    V16 acc[H * 4];
    KVASIR_UNROLL
    for (int j = 0; j < H * 4; ++j) acc[j] = zero();
    for (uint64_t bits = mask; bits != 0; bits &= bits - 1) {
      const int i = __builtin_ctzll(bits);
      V16 vv[4];
      KVASIR_UNROLL
      for (int j = 0; j < 4; ++j) vv[j] = load(v[i] + d + 16 * j);
      KVASIR_UNROLL
      for (int h = 0; h < H; ++h) {
        const V16 ph = set1(p[h * kTilePositions + i]);
        KVASIR_UNROLL
        for (int j = 0; j < 4; ++j) acc[h * 4 + j] = fma(ph, vv[j], acc[h * 4 + j]);
      }
    }
    KVASIR_UNROLL
    for (int h = 0; h < H; ++h) KVASIR_UNROLL
    for (int j = 0; j < 4; ++j) store(o + h * head_dim + d + 16 * j, acc[h * 4 + j]);
  }
}

template <int H>
inline void weigh(const float* p, const float* const* v, uint64_t mask, int head_dim, float* o) {
  if (head_dim % 64 == 0)
    weigh_rows64<H>(p, v, mask, head_dim, o);
  else
    weigh_rows<H>(p, v, mask, head_dim, o);
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
  float* p = temp;                           // [group][64]
  float* oj = p + a.group * kTilePositions;  // [group][head_dim]
  float* mj = oj + a.group * a.head_dim;     // [group]
  float* lj = mj + a.group;                  // [group]
  const float* q = a.q + t * a.q_stride;
  for (int h = 0; h < a.group; ++h)
    softmax_tile(q + h * a.head_dim, rows.k, mask, a.head_dim, a.scale, p + h * kTilePositions, mj + h, lj + h);
  for (int h = 0; h < a.group;) {
    const float* ph = p + h * kTilePositions;
    float* oh = oj + h * a.head_dim;
    switch (a.group - h) {
      case 1:
        weigh<1>(ph, rows.v, mask, a.head_dim, oh);
        h += 1;
        break;
      case 2:
        weigh<2>(ph, rows.v, mask, a.head_dim, oh);
        h += 2;
        break;
      case 3:
        weigh<3>(ph, rows.v, mask, a.head_dim, oh);
        h += 3;
        break;
      default:
        weigh<4>(ph, rows.v, mask, a.head_dim, oh);
        h += 4;
        break;
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

}  // namespace
}  // namespace KVASIR_SIMD_NS
