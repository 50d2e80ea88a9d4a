// Products of integer weights with the activations of few tokens: kRows rows read directly in their stored form, one
// granule of each at a time (integer_forms_simd.h). Part of kernels_integer_simd.h, which has the panels for many
// tokens. Every row keeps its chain of docs/numerics.md: acc = fma(sum of products, scale * d, acc), parts ascending.
//
// Decoding is bound by memory only if three things hold. (1) Nothing is gathered: a permutation puts the blocks of two
// rows side by side, and sums are stored in the order [part][row] that the chain reads, all rows at once. (2) A token's
// chain runs one granule late, when its operands have long been ready. (3) Memory is prefetched ahead in all the rows
// that are read in parallel.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dtype/operands.h"
#include "math/kernels.h"
#include "math/simd/integer_forms_simd.h"

namespace KVASIR_SIMD_NS {
namespace {

using kvasir::ActBlock;
using kvasir::Arrangement;
using kvasir::kActElems;
using kvasir::kFewIntegerTokens;

template <class Form>
constexpr int kOverBy = Form::kBits == 8 ? (kSignedWeights ? 0 : 128) : Form::kMid;  // subtract from every byte
template <class Form>
constexpr int kOverBits = __builtin_ctz(kOverBy<Form> | 128);  // its logarithm, if it is not 0

/// One token's activations of a granule, in the order of its registers. All forms of one Arrangement share it.
template <class Form>
struct Arranged {
  static constexpr int kSums = Form::kFactors ? 2 * Form::kParts : Form::kParts;
  alignas(64) int8_t q[32 * Form::kParts];  // by piece
  int32_t sums[kSums];                      // sums of q: per part by position, or per piece if pieces have factors
  float d[Form::kParts];                    // by position
  float sum[Form::kParts];                  // sum of a part's q, in order of parts
};

/// The parts of all rows, by position: the sum of products and its unit; the unit of the activations' sum, and that
/// sum where it differs by row.
template <class Form>
struct alignas(64) Terms {
  float s[kRows * Form::kParts], d[kRows * Form::kParts], m[Form::kOffsets ? kRows * Form::kParts : 1],
      o[Form::kOffsetFactors ? kRows * Form::kParts : 1];
};

/// The integer factors of a granule's pieces: bytes 4i..4i+3 are those of parts 2i and 2i + 1.
template <class Form>
struct Factors {
  RowBytes of[4], of_offset[4];
};

template <class Form>
KVASIR_SIMD_FN void arrange_part(const ActBlock& x, int part, Arranged<Form>& to) {
  const int at = Form::position(part);
  __builtin_memcpy(to.q + 16 * Form::piece(part, 0), x.q, 16);
  __builtin_memcpy(to.q + 16 * Form::piece(part, 1), x.q + 16, 16);
  to.d[at] = x.d;
  to.sum[part] = static_cast<float>(x.sum);
  if constexpr (Form::kFactors) {
    to.sums[Form::piece(part, 0)] = x.first;
    to.sums[Form::piece(part, 1)] = x.sum - x.first;
  } else {
    to.sums[at] = x.sum;
  }
}

template <class Form>
void arrange_token(const ActBlock* x, int64_t parts, std::byte* out) {
  static_assert(sizeof(Arranged<Form>) == kvasir::kArrangedBytes * Form::kParts);
  auto* to = reinterpret_cast<Arranged<Form>*>(out);
  for (; parts >= Form::kParts; parts -= Form::kParts, x += Form::kParts, ++to) KVASIR_UNROLL
  for (int part = 0; part < Form::kParts; ++part) arrange_part<Form>(x[part], part, *to);
  for (int part = 0; part < static_cast<int>(parts); ++part) arrange_part<Form>(x[part], part, *to);
}

void arrange(Arrangement arrangement, const ActBlock* x, int64_t parts, std::byte* out) {
  if (arrangement == Arrangement::blocks) return arrange_token<FormQ4_0>(x, parts, out);
  if (arrangement == Arrangement::pairs) return arrange_token<FormAffineK<4>>(x, parts, out);
  arrange_token<FormQ6K>(x, parts, out);
}

// ---- a granule -------------------------------------------------------------------------------------

template <class Form>
using RowProducts = Products<Form::kBits>;

/// Adds the products of one pair of rows' registers in step kStep with one token to products[sum][pair].
template <class Form, int kStep>
KVASIR_SIMD_FN void multiply(const Bytes* w, const Arranged<Form>& x, RowProducts<Form> (*products)[4], int pair) {
  constexpr int kPerSum = Form::kRegisters / Form::kSums;
  KVASIR_UNROLL
  for (int i = 0; i < Form::kRegisters; ++i) {
    const int8_t* q = x.q + (kStep * Form::kRegisters + i) * 16 * kPieces;
    const Bytes xs = Form::kFactors ? twice(q) : for_both_rows(q);
    RowProducts<Form>& sum = products[i / kPerSum][pair];
    sum = add_products(i % kPerSum == 0 ? no_products<Form::kBits>() : sum, w[i], xs);
  }
}

// The exact sums of register i of a step.
template <class Form, int kStep, int i>
KVASIR_SIMD_FN Words exact_sums(const RowProducts<Form> (*products)[4], const Arranged<Form>& x) {
  const int32_t* over = x.sums + (kStep * Form::kSums + i) * kPieces;
  const Words sums = sum_rows<Form::kBits>(products[i]);
  if constexpr (kOverBy<Form> == 0) return sums;
  return sums - shift_left<kOverBits<Form>>(Form::kFactors ? each_piece_by_row(over) : each_piece(over));
}

// Index among the granule's pieces, in order of parts, of register i of step kStep = 2 h + j: its part is 4 h + j, or
// 4 h + 2 + j in the upper registers.
template <class Form>
static constexpr int piece_of(int step, int i) {
  return 2 * (step / 2 * 4 + i / (Form::kSums / 2) * 2 + step % 2) + i % (Form::kSums / 2);
}

// The exact sums of register i of a step times the factors of its pieces.
template <class Form, int kStep, int i>
KVASIR_SIMD_FN Words with_factors(const RowProducts<Form> (*products)[4], const Arranged<Form>& x,
                                  const RowBytes* factors) {
  constexpr int kPiece = piece_of<Form>(kStep, i);
  return exact_sums<Form, kStep, i>(products, x) * signed_words<kPiece % 4 / kPieces>(factors[kPiece / 4]);
}
// The sums of the activations of register i of a step times the factors of its pieces' offsets.
template <class Form, int kStep, int i>
KVASIR_SIMD_FN Words offsets_with_factors(const Arranged<Form>& x, const RowBytes* factors) {
  constexpr int kPiece = piece_of<Form>(kStep, i);
  const int32_t* sums = x.sums + (kStep * Form::kSums + i) * kPieces;
  return each_piece_by_row(sums) * signed_words<kPiece % 4 / kPieces>(factors[kPiece / 4]);
}

/// Stores the sums of parts that registers i and i + 1 of a step complete.
template <class Form, int kStep, int i>
KVASIR_SIMD_FN void store_factored(const RowProducts<Form> (*products)[4], const Arranged<Form>& x,
                                   const Factors<Form>& f, int at, Terms<Form>& out) {
  store(out.s + at, to_float(add_pieces(with_factors<Form, kStep, i>(products, x, f.of),
                                        with_factors<Form, kStep, i + 1>(products, x, f.of))));
  if constexpr (Form::kOffsetFactors)
    store(out.o + at, to_float(add_pieces(offsets_with_factors<Form, kStep, i>(x, f.of_offset),
                                          offsets_with_factors<Form, kStep, i + 1>(x, f.of_offset))));
}

/// Stores the sums of a step, as floats, at their positions.
template <class Form, int kStep>
KVASIR_SIMD_FN void finish(const RowProducts<Form> (*products)[4], const Arranged<Form>& x, const Factors<Form>& f,
                           Terms<Form>& out) {
  constexpr int kAt = kRows * kPieces * kStep * (Form::kFactors ? 2 / kPieces : Form::kSums);
  if constexpr (!Form::kFactors) {
    store(out.s + kAt, to_float(exact_sums<Form, kStep, 0>(products, x)));
    if constexpr (Form::kSums == 2)
      store(out.s + kAt + kRows * kPieces, to_float(exact_sums<Form, kStep, 1>(products, x)));
  } else {
    store_factored<Form, kStep, 0>(products, x, f, kAt, out);
    if constexpr (kPieces == 1) store_factored<Form, kStep, 2>(products, x, f, kAt + kRows, out);
  }
}

template <class Form>
KVASIR_SIMD_FN void store_units(const GranuleScales<Form>& scales, const Arranged<Form>& x, Terms<Form>& out) {
  KVASIR_UNROLL
  for (int i = 0; i < kPositions<Form>; ++i) {
    const Floats d = each_piece(x.d + i * kPieces);
    store(out.d + kRows * kPieces * i, scales.scale[i] * d);
    if constexpr (Form::kOffsets) store(out.m + kRows * kPieces * i, scales.offset[i] * d);
  }
}

// How far ahead of itself, in bytes, each row is prefetched. At the end of a row this continues in the row kRows
// further on, or further if that would be less than kLeastAheadBytes ahead. Eight rows of this many bytes fit the
// level-1 cache, and a row's lines arrive in order, as the hardware prefetcher expects (docs/performance.md).
constexpr size_t kAheadBytes = 2048, kLeastAheadBytes = size_t{12} << 10;

/// Prefetches a pair's share of the granule `ahead` bytes further on, in one step.
template <class Form>
KVASIR_SIMD_FN void ask_ahead(const Blocks& rows, int pair, size_t ahead, int step) {
  KVASIR_UNROLL
  for (int line = step; line < (Form::kBytes + 63) / 64; line += Form::kSteps) {
    prefetch(rows.row(pair) + ahead + 64 * line);
    if constexpr (kRows == 8) prefetch(rows.row(pair + 4) + ahead + 64 * line);
  }
}

// Steps kStep and later for one token: registers are multiplied as soon as they are unpacked.
template <class Form, bool kWhole, int kStep = 0>
KVASIR_SIMD_FN void sums_of_one(const Blocks& rows, int n, const Arranged<Form>& x, const Factors<Form>& factors,
                                size_t ahead, Terms<Form>& out) {
  if constexpr (kStep < Form::kSteps) {
    if (!kWhole && n <= kStep * kPieces) return;
    RowProducts<Form> products[Form::kSums][4];
    KVASIR_UNROLL
    for (int r = 0; r < 4; ++r) {
      Bytes w[Form::kRegisters];
      Form::template unpack<kStep, kWhole>(rows.row(r), rows.row(r + 4), n, w);
      multiply<Form, kStep>(w, x, products, r);
      if constexpr (kWhole) ask_ahead<Form>(rows, r, ahead, kStep);
    }
    finish<Form, kStep>(products, x, factors, out);
    sums_of_one<Form, kWhole, kStep + 1>(rows, n, x, factors, ahead, out);
  }
}

// The same for many tokens, `stride` granules apart: the rows' registers are unpacked once for all of them.
template <class Form, bool kWhole, int kStep = 0>
KVASIR_SIMD_FN void sums_of_many(const Blocks& rows, int n, const Arranged<Form>* x, int64_t stride, int tokens,
                                 const Factors<Form>& factors, Terms<Form>* out) {
  if constexpr (kStep < Form::kSteps) {
    if (!kWhole && n <= kStep * kPieces) return;
    Bytes w[4][Form::kRegisters];
    KVASIR_UNROLL
    for (int r = 0; r < 4; ++r) Form::template unpack<kStep, kWhole>(rows.row(r), rows.row(r + 4), n, w[r]);
    for (int t = 0; t < tokens; ++t) {
      RowProducts<Form> products[Form::kSums][4];
      KVASIR_UNROLL
      for (int r = 0; r < 4; ++r) multiply<Form, kStep>(w[r], x[t * stride], products, r);
      finish<Form, kStep>(products, x[t * stride], factors, out[t]);
    }
    sums_of_many<Form, kWhole, kStep + 1>(rows, n, x, stride, tokens, factors, out);
  }
}

template <class Form>
KVASIR_SIMD_FN void factors_of(const Blocks& rows, Factors<Form>& out) {
  if constexpr (Form::kFactors) Form::factors(rows, out.of);
  if constexpr (Form::kOffsetFactors) Form::offset_factors(rows, out.of_offset);
}

template <class Form, bool kWhole>
KVASIR_SIMD_FN void granule_of_one(const Blocks& rows, int n, const Arranged<Form>& x, size_t ahead, Terms<Form>& out) {
  Factors<Form> factors;
  factors_of<Form>(rows, factors);
  sums_of_one<Form, kWhole>(rows, n, x, factors, ahead, out);
  GranuleScales<Form> scales{};
  Form::template scales<kWhole>(rows, n, scales);
  store_units(scales, x, out);
  asm volatile("" : "+m"(out));  // otherwise g++ takes the chain's operands from the registers, by shuffles
}

template <class Form, bool kWhole>
KVASIR_SIMD_FN void granule_of_many(const Blocks& rows, int n, const Arranged<Form>* x, int64_t stride, int tokens,
                                    Terms<Form>* out) {
  Factors<Form> factors;
  factors_of<Form>(rows, factors);
  GranuleScales<Form> scales{};
  Form::template scales<kWhole>(rows, n, scales);
  sums_of_many<Form, kWhole>(rows, n, x, stride, tokens, factors, out);
  for (int t = 0; t < tokens; ++t) store_units(scales, x[t * stride], out[t]);
}

/// Advances the rows' chains by n parts.
template <class Form>
KVASIR_SIMD_FN RowFloats chain(const Terms<Form>& terms, const Arranged<Form>& x, int n, RowFloats acc) {
  KVASIR_UNROLL
  for (int part = 0; part < n; ++part) {
    const int at = kRows * Form::position(part);
    acc = fma(load_rows(terms.s + at), load_rows(terms.d + at), acc);
    if constexpr (Form::kOffsetFactors)
      acc = fma(load_rows(terms.o + at), load_rows(terms.m + at), acc);
    else if constexpr (Form::kOffsets)
      acc = fma(all_rows(x.sum[part]), load_rows(terms.m + at), acc);
  }
  return acc;
}

// ---- rows -------------------------------------------------------------------------------------------------------

/// The activations of one call and the shape of its rows.
template <class Form>
struct FewRows {
  const Arranged<Form>* x;
  int64_t granules;
  int whole, rest;  // granules with all their blocks; blocks in an incomplete last one
  size_t stride, ahead;
  int tokens;

  /// Prefetch distance at granule g of a row; `after` if that would be past the end of the row.
  KVASIR_SIMD_MEMBER size_t ahead_of(int g, size_t after) const {
    return static_cast<size_t>(g) * Form::kBytes + ahead < stride ? ahead : after;
  }
};

// Computes kRows rows from `base` on for one token; `after` is the distance to the rows that come next.
template <class Form>
__attribute__((noinline)) void rows_of_one(const FewRows<Form>& f, const std::byte* base, size_t after,
                                           RowFloats* acc) {
  Terms<Form> terms;
  RowFloats sums = no_rows();
  const Arranged<Form>* x = f.x;
  for (int g = 0; g < f.whole; ++g, ++x, base += Form::kBytes) {
    if (g != 0) sums = chain(terms, x[-1], Form::kParts, sums);
    const size_t ahead = f.ahead_of(g, after);
    granule_of_one<Form, true>({base, f.stride}, 4, *x, ahead, terms);
  }
  if (f.whole != 0) sums = chain(terms, x[-1], Form::kParts, sums);
  if constexpr (kOfBlocks<Form>) {
    if (f.rest != 0) {
      granule_of_one<Form, false>({base, f.stride}, f.rest, *x, 0, terms);
      sums = chain(terms, *x, f.rest, sums);
    }
  }
  *acc = sums;
}

// The same for all tokens.
template <class Form>
__attribute__((noinline)) void rows_of_many(const FewRows<Form>& f, const std::byte* base, size_t after,
                                            RowFloats* acc) {
  Terms<Form> terms[kFewIntegerTokens];
  for (int t = 0; t < f.tokens; ++t) acc[t] = no_rows();
  const Arranged<Form>* x = f.x;
  for (int g = 0; g < f.whole; ++g, ++x, base += Form::kBytes) {
    const Blocks rows{base, f.stride};
    const size_t ahead = f.ahead_of(g, after);
    for (int pair = 0; pair < 4; ++pair)
      for (int step = 0; step < Form::kSteps; ++step) ask_ahead<Form>(rows, pair, ahead, step);
    granule_of_many<Form, true>(rows, 4, x, f.granules, f.tokens, terms);
    for (int t = 0; t < f.tokens; ++t) acc[t] = chain(terms[t], x[t * f.granules], Form::kParts, acc[t]);
  }
  if constexpr (kOfBlocks<Form>) {
    if (f.rest == 0) return;
    granule_of_many<Form, false>({base, f.stride}, f.rest, x, f.granules, f.tokens, terms);
    for (int t = 0; t < f.tokens; ++t) acc[t] = chain(terms[t], x[t * f.granules], f.rest, acc[t]);
  }
}

inline void write_rows(const MatmulArgs& a, int64_t row, int t, RowFloats y) {
  if (a.bias != nullptr) y = y + load_rows(a.bias + row);
  store_rows(a.y + t * a.y_stride + row, y);
}
inline void write_row(const MatmulArgs& a, int64_t row, int t, RowFloats y) {
  float rows[kRows];
  store_rows(rows, y);
  a.y[t * a.y_stride + row] = a.bias != nullptr ? rows[0] + a.bias[row] : rows[0];
}

template <class Form>
void integer_few(const MatmulArgs& a) {
  const auto compute = a.tokens == 1 ? rows_of_one<Form> : rows_of_many<Form>;
  const int64_t parts = a.cols / kActElems;
  FewRows<Form> f{reinterpret_cast<const Arranged<Form>*>(a.arranged),
                  (parts + Form::kParts - 1) / Form::kParts,
                  static_cast<int>(parts / Form::kParts),
                  static_cast<int>(parts % Form::kParts),
                  a.row_bytes,
                  a.row_bytes < kAheadBytes ? a.row_bytes : kAheadBytes,
                  a.tokens};
  const std::byte* base = a.w + static_cast<size_t>(a.row_begin) * a.row_bytes;
  const size_t bytes = kRows * a.row_bytes, groups = bytes < kLeastAheadBytes ? kLeastAheadBytes / bytes : 1,
               after = groups * bytes - a.row_bytes + f.ahead;
  RowFloats acc[kFewIntegerTokens];
  int64_t row = a.row_begin;
  for (; row + kRows <= a.row_end; row += kRows, base += bytes) {
    const bool last = row + static_cast<int64_t>(groups + 1) * kRows > a.row_end;  // no prefetch past the end
    compute(f, base, last ? 0 : after, acc);
    for (int t = 0; t < a.tokens; ++t) write_rows(a, row, t, acc[t]);
  }
  f.stride = 0;  // the remaining rows, one by one, each computed kRows times
  for (; row < a.row_end; ++row, base += a.row_bytes) {
    compute(f, base, 0, acc);
    for (int t = 0; t < a.tokens; ++t) write_row(a, row, t, acc[t]);
  }
}

}  // namespace
}  // namespace KVASIR_SIMD_NS
