// Products of integer weights with int8 activations, for AVX2 and AVX-512: 16 rows at a time, one lane a row, so that
// every lane is one row's chain of blocks in ascending order (docs/numerics.md). Part of kernels_simd.h; types without
// a form of their own go to the scalar table, which is the codec's dot.
// Source of the stored layouts: ggml-org/ggml, ggml-common.h.
#pragma once

#include "dtype/operands.h"
#include "math/kernels.h"
#include "math/kernels_matmul_simd.h"

namespace KVASIR_SIMD_NS {
namespace {

using kvasir::ActBlock;
using kvasir::kActElems;

constexpr int kMaxParts = 8;  // of 32 elements, in a stored block

/// What 16 stored blocks, one of each row, say of their parts.
struct Scales {
  float scale[kMaxParts][16], offset[kMaxParts][16];
  int32_t first[kMaxParts][16], second[kMaxParts][16];  // of each half of a part
};

inline __m128i load_16(const std::byte* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }
inline __m256i load_32(const std::byte* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
inline __m256i low_nibbles(__m256i x) { return _mm256_and_si256(x, _mm256_set1_epi8(15)); }

/// The f16 at `at` bytes into each block.
inline V16 halves(const std::byte* const* blocks, int at) {
  uint16_t h[16];
  KVASIR_UNROLL
  for (int r = 0; r < 16; ++r) std::memcpy(h + r, blocks[r] + at, sizeof *h);
  return load_f16(reinterpret_cast<const std::byte*>(h));
}

// Each type: the 32 bytes of a part in element order, kMid less than which they mean, and the 16 rows' scales.

struct RowsQ8_0 {
  static constexpr int kBytes = 34, kParts = 1, kMid = 0;
  static constexpr bool kSigned = true, kOffsets = false, kHalves = false;
  static inline __m256i load(const std::byte* block, int) { return load_32(block + 2); }
  static inline void scales(const std::byte* const* blocks, Scales& s) { store(s.scale[0], halves(blocks, 0)); }
};

struct RowsQ4_0 {
  static constexpr int kBytes = 18, kParts = 1, kMid = 8;
  static constexpr bool kSigned = false, kOffsets = false, kHalves = false;
  static inline __m256i load(const std::byte* block, int) {
    const __m128i packed = load_16(block + 2);
    return low_nibbles(_mm256_set_m128i(_mm_srli_epi16(packed, 4), packed));
  }
  static inline void scales(const std::byte* const* blocks, Scales& s) { store(s.scale[0], halves(blocks, 0)); }
};

// d, dmin, 12 bytes with 8 scales and 8 minimums of 6 bits, 128 bytes of nibbles: two parts in each 32 bytes.
struct RowsQ4K {
  static constexpr int kBytes = 144, kParts = 8, kMid = 0;
  static constexpr bool kSigned = false, kOffsets = true, kHalves = false;
  static inline __m256i load(const std::byte* block, int part) {
    const __m256i packed = load_32(block + 16 + part / 2 * 32);
    return low_nibbles(part % 2 == 0 ? packed : _mm256_srli_epi16(packed, 4));
  }
  static inline void scales(const std::byte* const* blocks, Scales& s) {
    uint8_t scale[8][16], minimum[8][16];
    for (int r = 0; r < 16; ++r) {
      uint32_t w[3];
      std::memcpy(w, blocks[r] + 4, sizeof w);
      const uint32_t low = 0x3f3f3f3f, nibble = 0x0f0f0f0f, two = 0x03030303;
      const uint32_t first[2] = {w[0] & low, (w[2] & nibble) | (w[0] >> 6 & two) << 4};
      const uint32_t second[2] = {w[1] & low, (w[2] >> 4 & nibble) | (w[1] >> 6 & two) << 4};
      for (int p = 0; p < 8; ++p) {
        scale[p][r] = static_cast<uint8_t>(first[p / 4] >> (p % 4 * 8));
        minimum[p][r] = static_cast<uint8_t>(second[p / 4] >> (p % 4 * 8));
      }
    }
    const V16 d = halves(blocks, 0), dmin = halves(blocks, 2);
    for (int p = 0; p < 8; ++p) {
      store(s.scale[p], d * to_float(widen_u8(scale[p])));
      store(s.offset[p], negate(dmin * to_float(widen_u8(minimum[p]))));
    }
  }
};

// 128 bytes of low nibbles, 64 of pairs of high bits, 16 signed scales of 16 elements each, d.
struct RowsQ6K {
  static constexpr int kBytes = 210, kParts = 8, kMid = 32;
  static constexpr bool kSigned = false, kOffsets = false, kHalves = true;
  static inline __m256i load(const std::byte* block, int part) {
    const int half = part / 4, quarter = part % 4;
    const __m256i low = load_32(block + 64 * half + quarter % 2 * 32), high = load_32(block + 128 + 32 * half);
    const __m256i nibble = low_nibbles(quarter < 2 ? low : _mm256_srli_epi16(low, 4));
    const __m256i pair = _mm256_and_si256(_mm256_srl_epi16(high, _mm_cvtsi32_si128(2 * quarter)), _mm256_set1_epi8(3));
    return _mm256_or_si256(nibble, _mm256_slli_epi16(pair, 4));
  }
  static inline void scales(const std::byte* const* blocks, Scales& s) {
    uint8_t bytes[16][16];
    for (int r = 0; r < 16; ++r)
      for (int i = 0; i < 16; ++i) bytes[i][r] = static_cast<uint8_t>(blocks[r][192 + i]);
    const V16 d = halves(blocks, 208);
    for (int p = 0; p < 8; ++p) {
      store(s.scale[p], d);
      store_i(s.first[p], widen_i8(bytes[2 * p]));
      store_i(s.second[p], widen_i8(bytes[2 * p + 1]));
    }
  }
};

template <class Rows>
constexpr bool kStaySigned = Rows::kSigned&& kSignedWeights;
template <class Rows>
constexpr int kOver = Rows::kSigned ? (kSignedWeights ? 0 : 128) : Rows::kMid;  // what every byte is too large by

template <class Rows>
inline __m256i weights(const std::byte* block, int part) {
  const __m256i w = Rows::load(block, part);
  if constexpr (Rows::kSigned && !kSignedWeights) return _mm256_xor_si256(w, _mm256_set1_epi8(-128));
  return w;
}

/// acc after one part: the exact sum of products `sum`, and the offsets' share.
template <class Rows>
inline V16 next(V16 acc, I16 sum, const float* scale, const float* offset, const ActBlock& x) {
  acc = fma(to_float(sum), load(scale) * set1(x.d), acc);
  if constexpr (Rows::kOffsets) acc = fma(set1(static_cast<float>(x.sum)), load(offset) * set1(x.d), acc);
  return acc;
}

inline void write_lanes(const MatmulArgs& a, int64_t row, int n, int token, V16 y) {
  if (a.bias != nullptr) y = y + load_n(a.bias + row, n);
  store_n(a.y + token * a.y_stride + row, y, n);
}

// Pointers to 16 rows; past the end of the range the last one again.
inline void row_pointers(const MatmulArgs& a, int64_t row, const std::byte** rows) {
  for (int r = 0; r < 16; ++r)
    rows[r] = a.w + static_cast<size_t>(row + r < a.row_end ? row + r : a.row_end - 1) * a.row_bytes;
}

// ---- few tokens: rows straight from the file's form -------------------------------------------------------------

template <class Rows>
inline I16 part_sum(const __m256i* w, const ActBlock& x, const Scales& s, int part) {
  const __m256i xs = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x.q));
  if constexpr (!Rows::kHalves) {
    const I16 sum = row_sums<kStaySigned<Rows>>(w, xs);
    return kOver<Rows> == 0 ? sum : sum - set1_i(kOver<Rows> * x.sum);
  } else {
    const __m256i none = _mm256_setzero_si256();
    const I16 first = row_sums<false>(w, _mm256_blend_epi32(none, xs, 0x0f)) - set1_i(kOver<Rows> * x.first);
    const I16 second = row_sums<false>(w, _mm256_blend_epi32(none, xs, 0xf0)) - set1_i(kOver<Rows> * (x.sum - x.first));
    return first * load_i(s.first[part]) + second * load_i(s.second[part]);
  }
}

template <class Rows, int C>
inline void few_tokens(const MatmulArgs& a, int64_t row) {
  const std::byte* block[16];
  row_pointers(a, row, block);
  const int64_t acts = a.cols / kActElems;
  Scales s;
  V16 acc[C];
  KVASIR_UNROLL
  for (int c = 0; c < C; ++c) acc[c] = zero();
  for (int64_t i = 0; i < acts; i += Rows::kParts) {
    Rows::scales(block, s);
    for (int part = 0; part < Rows::kParts; ++part) {
      __m256i w[16];
      KVASIR_UNROLL
      for (int r = 0; r < 16; ++r) w[r] = weights<Rows>(block[r], part);
      KVASIR_UNROLL
      for (int c = 0; c < C; ++c) {
        const ActBlock& x = a.act[c * acts + i + part];
        acc[c] = next<Rows>(acc[c], part_sum<Rows>(w, x, s, part), s.scale[part], s.offset[part], x);
      }
    }
    for (int r = 0; r < 16; ++r) {
      prefetch(block[r] + 16 * a.row_bytes);
      block[r] += Rows::kBytes;
    }
  }
  const int n = static_cast<int>(a.row_end - row < 16 ? a.row_end - row : 16);
  for (int c = 0; c < C; ++c) write_lanes(a, row, n, c, acc[c]);
}

template <class Rows>
void integer_few(const MatmulArgs& a) {
  for (int64_t row = a.row_begin; row < a.row_end; row += 16) {
    switch (a.tokens) {
      case 1:
        few_tokens<Rows, 1>(a, row);
        break;
      case 2:
        few_tokens<Rows, 2>(a, row);
        break;
      case 3:
        few_tokens<Rows, 3>(a, row);
        break;
      default:
        few_tokens<Rows, 4>(a, row);
        break;
    }
  }
}

// ---- many tokens: 16 rows interleaved once ----------------------------------------------------------------------

/// One part of 16 rows: bytes 4g..4g+3 of row r at w[g][4r].
struct PanelPart {
  uint8_t w[8][64];
  float scale[16], offset[16];
  int32_t first[16], second[16];
};

template <class Rows>
void fill_panel(const MatmulArgs& a, int64_t row, PanelPart* panel) {
  const std::byte* block[16];
  row_pointers(a, row, block);
  Scales s;
  for (int64_t i = 0; i < a.cols / kActElems; i += Rows::kParts) {
    Rows::scales(block, s);
    for (int part = 0; part < Rows::kParts; ++part, ++panel) {
      for (int r = 0; r < 16; ++r) {
        uint32_t fours[8];
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(fours), weights<Rows>(block[r], part));
        for (int g = 0; g < 8; ++g) std::memcpy(panel->w[g] + 4 * r, fours + g, 4);
      }
      store(panel->scale, load(s.scale[part]));
      if constexpr (Rows::kOffsets) store(panel->offset, load(s.offset[part]));
      if constexpr (Rows::kHalves) {
        store_i(panel->first, load_i(s.first[part]));
        store_i(panel->second, load_i(s.second[part]));
      }
    }
    for (const std::byte*& b : block) b += Rows::kBytes;
  }
}

/// sums[c] += the products of groups from..to-1 with each token's block.
template <class Rows, int C>
inline void add_groups(const PanelPart& p, const ActBlock* x, int64_t stride, int from, I16* sums) {
  KVASIR_UNROLL
  for (int g = from; g < from + (Rows::kHalves ? 4 : 8); ++g) {
    const B64 w = load_b64(p.w[g]);
    KVASIR_UNROLL
    for (int c = 0; c < C; ++c) sums[c] = dot4<kStaySigned<Rows>>(sums[c], w, x[c * stride].q + 4 * g);
  }
}

template <class Rows, int C>
inline void panel_tokens(const MatmulArgs& a, const PanelPart* panel, int64_t row, int n, int token) {
  const int64_t acts = a.cols / kActElems;
  const ActBlock* x = a.act + token * acts;
  V16 acc[C];
  KVASIR_UNROLL
  for (int c = 0; c < C; ++c) acc[c] = zero();
  for (int64_t i = 0; i < acts; ++i, ++x) {
    const PanelPart& p = panel[i];
    I16 sums[C];
    KVASIR_UNROLL
    for (int c = 0; c < C; ++c) sums[c] = set1_i(-kOver<Rows> * (Rows::kHalves ? x[c * acts].first : x[c * acts].sum));
    add_groups<Rows, C>(p, x, acts, 0, sums);
    if constexpr (Rows::kHalves) {
      I16 second[C];
      KVASIR_UNROLL
      for (int c = 0; c < C; ++c) second[c] = set1_i(-kOver<Rows> * (x[c * acts].sum - x[c * acts].first));
      add_groups<Rows, C>(p, x, acts, 4, second);
      KVASIR_UNROLL
      for (int c = 0; c < C; ++c) sums[c] = sums[c] * load_i(p.first) + second[c] * load_i(p.second);
    }
    KVASIR_UNROLL
    for (int c = 0; c < C; ++c) acc[c] = next<Rows>(acc[c], sums[c], p.scale, p.offset, x[c * acts]);
  }
  KVASIR_UNROLL
  for (int c = 0; c < C; ++c) write_lanes(a, row, n, token + c, acc[c]);
}

template <class Rows>
void integer_many(const MatmulArgs& a) {
  static_assert(sizeof(PanelPart) <= sizeof(float) * kPanelRows * kActElems, "the panel must fit the scratch");
  auto* panel = reinterpret_cast<PanelPart*>(a.panel);
  for (int64_t row = a.row_begin; row < a.row_end; row += 16) {
    const int n = static_cast<int>(a.row_end - row < 16 ? a.row_end - row : 16);
    fill_panel<Rows>(a, row, panel);
    int t = 0;
    for (; t + kIntegerTokens <= a.tokens; t += kIntegerTokens) panel_tokens<Rows, kIntegerTokens>(a, panel, row, n, t);
    for (; t < a.tokens; ++t) panel_tokens<Rows, 1>(a, panel, row, n, t);
  }
}

template <class Rows>
void integer_rows(const MatmulArgs& a) {
  if (a.tokens <= kFewTokens)
    integer_few<Rows>(a);
  else
    integer_many<Rows>(a);
}

void matmul_integer(const MatmulArgs& a) {
  switch (a.form) {
    case RowForm::q8_0:
      return integer_rows<RowsQ8_0>(a);
    case RowForm::q4_0:
      return integer_rows<RowsQ4_0>(a);
    case RowForm::q4_k:
      return integer_rows<RowsQ4K>(a);
    case RowForm::q6_k:
      return integer_rows<RowsQ6K>(a);
    case RowForm::other:
    case RowForm::f32:
    case RowForm::f16:
    case RowForm::bf16:
      return kvasir::kScalarKernels.matmul_integer(a);
  }
}

// ---- activations ------------------------------------------------------------------------------------------------

inline uint32_t largest_lane(__m256i x) {
  __m128i m = _mm_max_epu32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
  m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0x4e));
  m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0xb1));
  return static_cast<uint32_t>(_mm_cvtsi128_si32(m));
}

inline int32_t sum_of_bytes(__m128i x) {
  const __m128i pairs = _mm_maddubs_epi16(_mm_set1_epi8(1), x), fours = _mm_madd_epi16(pairs, _mm_set1_epi16(1));
  const __m128i two = _mm_add_epi32(fours, _mm_shuffle_epi32(fours, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 0xb1)));
}

inline void encode_act_block(const float* x, ActBlock* out) {
  const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
  __m256 v[4];
  __m256i most = _mm256_setzero_si256();
  KVASIR_UNROLL
  for (int i = 0; i < 4; ++i) {
    v[i] = _mm256_loadu_ps(x + 8 * i);
    most = _mm256_max_epu32(most, _mm256_and_si256(_mm256_castps_si256(v[i]), magnitude));
  }
  const uint32_t largest = largest_lane(most);
  float amax;
  std::memcpy(&amax, &largest, sizeof amax);
  const bool finite = largest < 0x7f800000u;
  out->d = finite ? amax / 127.0f : __builtin_nanf("");
  const bool any = finite && out->d != 0;
  __m256i q[4];
  KVASIR_UNROLL
  for (int i = 0; i < 4; ++i) {
    const __m256i steps = _mm256_cvtps_epi32(_mm256_div_ps(v[i], _mm256_set1_ps(any ? out->d : 1.0f)));
    q[i] = any ? _mm256_max_epi32(_mm256_min_epi32(steps, _mm256_set1_epi32(127)), _mm256_set1_epi32(-127))
               : _mm256_setzero_si256();
  }
  const __m256i bytes =
      _mm256_permutevar8x32_epi32(_mm256_packs_epi16(_mm256_packs_epi32(q[0], q[1]), _mm256_packs_epi32(q[2], q[3])),
                                  _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out->q), bytes);
  out->first = sum_of_bytes(_mm256_castsi256_si128(bytes));
  out->sum = out->first + sum_of_bytes(_mm256_extracti128_si256(bytes, 1));
}

void encode_act(const float* x, ActBlock* out, int64_t n) {
  for (int64_t i = 0; i < n; i += kActElems) encode_act_block(x + i, out + i / kActElems);
}

}  // namespace
}  // namespace KVASIR_SIMD_NS
