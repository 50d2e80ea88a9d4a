// Products of integer weights with int8 activations: 16 rows at a time, one per lane, so that every lane is one row's
// chain of blocks in ascending order (docs/numerics.md). Part of kernels_simd.h. integer_rows_simd.h reads the stored
// blocks; types without a struct there use the scalar table, which calls the codec's dot.
#pragma once

#include <cstring>

#include "dtype/operands.h"
#include "math/kernels.h"
#include "math/simd/integer_rows_simd.h"
#include "math/simd/kernels_few_simd.h"

namespace KVASIR_SIMD_NS {
namespace {

using kvasir::ActBlock;
using kvasir::kActElems;
using kvasir::kPanelRows;
using kvasir::MatmulArgs;
using kvasir::RowForm;

template <class Weights>
constexpr int kOver = Weights::kSigned ? (kSignedWeights ? 0 : 128) : Weights::kMid;  // subtract from every byte

template <class Weights>
inline B32 weights(const std::byte* block, int part) {
  const B32 w = Weights::load(block, part);
  if constexpr (Weights::kSigned && !kSignedWeights) return plus128(w);
  return w;
}

inline void write_lanes(const MatmulArgs& a, int64_t row, int n, int token, V16 y) {
  if (a.bias != nullptr) y = y + load_n(a.bias + row, n);
  store_n(a.y + token * a.y_stride + row, y, n);
}

// 16 rows from `row` on. If fewer are left, copies them to the scratch behind two panels, and repeats the last.
inline Blocks blocks_of(const MatmulArgs& a, int64_t row) {
  const Blocks stored{a.w + static_cast<size_t>(row) * a.row_bytes, a.row_bytes};
  if (row + 16 <= a.row_end) return stored;
  const size_t bytes = static_cast<size_t>(a.cols / a.block_elems) * static_cast<size_t>(a.block_bytes);
  auto* copy = reinterpret_cast<std::byte*>(a.panel + kPanelRows / 2 * a.cols);
  for (int r = 0; r < 16; ++r)
    std::memcpy(copy + static_cast<size_t>(r) * bytes,
                stored.row(row + r < a.row_end ? r : static_cast<int>(a.row_end - 1 - row)), bytes);
  return {copy, bytes};
}

// ---- many tokens: 16 rows interleaved once ----------------------------------------------------------------------

/// One part of 16 rows: bytes 4g..4g+3 of row r at w[g][4r].
struct PanelPart {
  uint8_t w[8][64];
  float scale[16], offset[16];
  int32_t factors[2][16], offset_factors[2][16];
};

// Sixteen rows are more streams than a hardware prefetcher follows, so each line is prefetched this many bytes ahead.
constexpr int64_t kPanelAhead = 512;

// `next`: distance in bytes to the rows of the following panel, which are prefetched meanwhile; 0: there is none.
template <class Weights>
void fill_panel(const MatmulArgs& a, int64_t row, size_t next, PanelPart* panel) {
  Blocks blocks = blocks_of(a, row);
  Scales s;
  const int64_t parts = a.cols / kActElems, bytes = parts / Weights::kParts * Weights::kBytes;
  int64_t asked = 0, at = 0;
  for (int64_t i = 0; i < parts; i += Weights::kParts, at += Weights::kBytes, blocks.base += Weights::kBytes) {
    for (; asked < bytes && asked < at + kPanelAhead; asked += 64) KVASIR_UNROLL
    for (int r = 0; r < 16; ++r) {
      prefetch(blocks.row(r) + (asked - at));
      if (next != 0) prefetch_far(blocks.row(r) + (asked - at) + next);
    }
    Weights::scales(blocks, s);
    for (int part = 0; part < Weights::kParts; ++part, ++panel) {
      B32 w[16];
      KVASIR_UNROLL
      for (int r = 0; r < 16; ++r) w[r] = weights<Weights>(blocks.row(r), part);
      interleave(w, panel->w[0]);
      store(panel->scale, load(s.scale[part]));
      if constexpr (Weights::kOffsets) store(panel->offset, load(s.offset[part]));
      if constexpr (Weights::kHalves) KVASIR_UNROLL
      for (int half = 0; half < 2; ++half) {
        store_i(panel->factors[half], load_i(s.factors[part][half]));
        if constexpr (Weights::kOffsets) store_i(panel->offset_factors[half], load_i(s.offset_factors[part][half]));
      }
    }
  }
}

/// acc after one part: adds the exact sum of products `sum`, then the offset's share.
template <class Weights>
inline V16 next(V16 acc, I16 sum, const PanelPart& p, const ActBlock& x) {
  acc = fma(to_float(sum), load(p.scale) * set1(x.d), acc);
  if constexpr (!Weights::kOffsets) return acc;
  V16 offsets = set1(static_cast<float>(x.sum));
  if constexpr (Weights::kHalves)
    offsets =
        to_float(set1_i(x.first) * load_i(p.offset_factors[0]) + set1_i(x.sum - x.first) * load_i(p.offset_factors[1]));
  return fma(offsets, load(p.offset) * set1(x.d), acc);
}

/// Adds to sums[v][c] the products of n groups, starting at `from`, of V panels' parts with each token's block. n
/// groups must fit the running sums (kFit).
template <class Weights, int C, int V>
inline void add_fitting(const PanelPart* const* p, const ActBlock* x, int64_t stride, int from, int n, I16* sums) {
  Sums<Weights::kBits> s[V * C];
  KVASIR_UNROLL
  for (int i = 0; i < V * C; ++i) s[i] = begin_sums<Weights::kBits>(sums[i]);
  KVASIR_UNROLL
  for (int g = from; g < from + n; ++g) {
    B64 w[V];
    KVASIR_UNROLL
    for (int v = 0; v < V; ++v) w[v] = load_b64(p[v]->w[g]);
    KVASIR_UNROLL
    for (int c = 0; c < C; ++c) KVASIR_UNROLL
    for (int v = 0; v < V; ++v) s[v * C + c] = add_four(s[v * C + c], w[v], x[c * stride].q + 4 * g);
  }
  KVASIR_UNROLL
  for (int i = 0; i < V * C; ++i) sums[i] = end_sums(sums[i], s[i]);
}
/// The same for all groups of a part, or of half of it.
template <class Weights, int C, int V>
inline void add_groups(const PanelPart* const* p, const ActBlock* x, int64_t stride, int from, I16* sums) {
  constexpr int kGroups = Weights::kHalves ? 4 : 8,
                kAtOnce = kFit<Weights::kBits> < kGroups ? kFit<Weights::kBits> : kGroups;
  KVASIR_UNROLL
  for (int g = from; g < from + kGroups; g += kAtOnce) add_fitting<Weights, C, V>(p, x, stride, g, kAtOnce, sums);
}

/// The exact sums of products of one part.
template <class Weights, int C, int V>
inline void part_sums(const PanelPart* const* p, const ActBlock* x, int64_t stride, I16* sums) {
  KVASIR_UNROLL
  for (int i = 0; i < V * C; ++i) {
    const ActBlock& block = x[i % C * stride];
    sums[i] = set1_i(-kOver<Weights> * (Weights::kHalves ? block.first : block.sum));
  }
  add_groups<Weights, C, V>(p, x, stride, 0, sums);
  if constexpr (Weights::kHalves) {
    I16 second[V * C];
    KVASIR_UNROLL
    for (int i = 0; i < V * C; ++i)
      second[i] = set1_i(-kOver<Weights> * (x[i % C * stride].sum - x[i % C * stride].first));
    add_groups<Weights, C, V>(p, x, stride, 4, second);
    KVASIR_UNROLL
    for (int i = 0; i < V * C; ++i)
      sums[i] = sums[i] * load_i(p[i / C]->factors[0]) + second[i] * load_i(p[i / C]->factors[1]);
  }
}

// Computes C tokens by V panels of 16 rows.
template <class Weights, int C, int V>
inline void integer_tokens(const MatmulArgs& a, const PanelPart* panel, int64_t row, int n, int token) {
  const int64_t acts = a.cols / kActElems;
  const ActBlock* x = a.act + token * acts;
  V16 acc[V * C];
  KVASIR_UNROLL
  for (int i = 0; i < V * C; ++i) acc[i] = zero();
  for (int64_t i = 0; i < acts; ++i, ++x) {
    const PanelPart* p[V];
    KVASIR_UNROLL
    for (int v = 0; v < V; ++v) p[v] = panel + v * acts + i;
    I16 sums[V * C];
    part_sums<Weights, C, V>(p, x, acts, sums);
    KVASIR_UNROLL
    for (int j = 0; j < V * C; ++j) acc[j] = next<Weights>(acc[j], sums[j], *p[j / C], x[j % C * acts]);
  }
  KVASIR_UNROLL
  for (int j = 0; j < V * C; ++j) {
    const int first = 16 * (j / C), count = n - first < 16 ? n - first : 16;
    write_lanes(a, row + first, count, token + j % C, acc[j]);
  }
}

template <class Weights, int C, int V>
inline void all_tokens(const MatmulArgs& a, const PanelPart* panel, int64_t row, int n) {
  int t = 0;
  for (; t + C <= a.tokens; t += C) integer_tokens<Weights, C, V>(a, panel, row, n, t);
  if constexpr (C > 4)
    for (; t + 4 <= a.tokens; t += 4) integer_tokens<Weights, 4, V>(a, panel, row, n, t);
  if constexpr (C > 2)
    for (; t + 2 <= a.tokens; t += 2) integer_tokens<Weights, 2, V>(a, panel, row, n, t);
  for (; t < a.tokens; ++t) integer_tokens<Weights, 1, V>(a, panel, row, n, t);
}

template <class Weights>
void integer_many(const MatmulArgs& a) {
  static_assert(sizeof(PanelPart) * 2 <= sizeof(float) * kPanelRows / 2 * kActElems, "blocks_of copies rows behind");
  constexpr int V = Weights::kHalves ? 1 : kIntegerVectors;  // two sums each need the registers
  constexpr int C = V == 1 ? kIntegerTokens : kIntegerTokensWide;
  auto* panel = reinterpret_cast<PanelPart*>(a.panel);
  for (int64_t row = a.row_begin; row < a.row_end; row += 16 * V) {
    const int n = static_cast<int>(a.row_end - row < 16 * V ? a.row_end - row : 16 * V);
    const size_t next = row + 32 * V <= a.row_end ? static_cast<size_t>(16 * V) * a.row_bytes : 0;
    for (int first = 0; first < n; first += 16)
      fill_panel<Weights>(a, row + first, next, panel + first / 16 * (a.cols / kActElems));
    if (n > 16)
      all_tokens<Weights, C, V>(a, panel, row, n);
    else
      all_tokens<Weights, kIntegerTokens, 1>(a, panel, row, n);
  }
}

template <class Form, class Weights>
void integer_rows(const MatmulArgs& a) {
  if (a.arranged != nullptr)
    integer_few<Form>(a);
  else
    integer_many<Weights>(a);
}

void matmul_integer(const MatmulArgs& a) {
  switch (a.form) {
    case RowForm::q8_0:
      return integer_rows<FormQ8_0, RowsQ8_0>(a);
    case RowForm::q4_0:
      return integer_rows<FormQ4_0, RowsCentered<4>>(a);
    case RowForm::q4_1:
      return integer_rows<FormQ4_1, RowsRanged<4>>(a);
    case RowForm::q5_0:
      return integer_rows<FormQ5_0, RowsCentered<5>>(a);
    case RowForm::q5_1:
      return integer_rows<FormQ5_1, RowsRanged<5>>(a);
    case RowForm::q4_k:
      return integer_rows<FormAffineK<4>, RowsAffineK<4>>(a);
    case RowForm::q5_k:
      return integer_rows<FormAffineK<5>, RowsAffineK<5>>(a);
    case RowForm::q6_k:
      return integer_rows<FormQ6K, RowsQ6K>(a);
    case RowForm::q3_k:
      return integer_rows<FormQ3K, RowsQ3K>(a);
    case RowForm::q2_k:
      return integer_rows<FormQ2K, RowsQ2K>(a);
    case RowForm::iq4_xs:
      return integer_rows<FormIq4Xs, RowsIq4Xs>(a);
    case RowForm::mxfp4:
      return integer_rows<FormMxfp4, RowsMxfp4>(a);
    case RowForm::iq4_nl:
      return integer_rows<FormIq4Nl, RowsIq4Nl>(a);
    case RowForm::other:
    case RowForm::f32:
    case RowForm::f16:
    case RowForm::bf16:
      return kvasir::kScalarKernels.integer.matmul(a);
  }
}

// ---- activations ------------------------------------------------------------------------------------------------

// encode_act of dtype/operands.cc is the definition. Magnitudes order as their bits do; infinity and NaN are largest.
inline void encode_act_block(const float* x, ActBlock* out) {
  const uint32_t largest = largest_magnitude(x);
  float amax;
  std::memcpy(&amax, &largest, sizeof amax);
  const bool finite = largest < 0x7f800000u;
  out->d = finite ? amax / 127.0f : __builtin_nanf("");
  if (finite && out->d != 0)
    round_act(x, out);
  else
    std::memset(out->q, 0, sizeof out->q), out->sum = out->first = 0;
}

void encode_act(const float* x, ActBlock* out, int64_t n) {
  for (int64_t i = 0; i < n; i += kActElems) encode_act_block(x + i, out + i / kActElems);
}

// ---- measuring --------------------------------------------------------------------------------------------------

// As many chains as a tile has, each with its own activations, and changing weights: the compiler would compute
// repeated products once.
double int8_ops(int64_t rounds) {
  constexpr int kChains = kIntegerTokensWide * kIntegerVectors;
  alignas(64) uint8_t bytes[2 * 64] = {1, 2, 3};
  int8_t x[4 * kChains];
  for (int i = 0; i < 4 * kChains; ++i) x[i] = static_cast<int8_t>(i % 7 - 3);
  I16 acc[kChains];
  KVASIR_UNROLL
  for (int i = 0; i < kChains; ++i) acc[i] = set1_i(i);
  for (int64_t r = 0; r < rounds; ++r) {
    const B64 w = load_b64(bytes + 64 * (r & 1));
    KVASIR_UNROLL
    for (int i = 0; i < kChains; ++i) acc[i] = dot4<kSignedWeights>(acc[i], w, x + 4 * i);
  }
  I16 sum = set1_i(0);
  KVASIR_UNROLL
  for (int i = 0; i < kChains; ++i) sum = sum + acc[i];
  int32_t lanes[16];
  store_i(lanes, sum);
  return lanes[1] != 123 ? static_cast<double>(rounds) * kChains * 128 : 0;
}

}  // namespace

constexpr kvasir::IntegerKernels make_integer_kernels() { return {matmul_integer, encode_act, arrange, int8_ops}; }

}  // namespace KVASIR_SIMD_NS
