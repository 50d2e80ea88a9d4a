// The table of kernels: everything that is computed per element, one table per CPU target, equal in bits.
// The order of every sum is in docs/numerics.md; the scalar table is written plainly and is the oracle of the others.
// Plain arguments only: this header is compiled for wide CPUs too, so nothing inline may end up in the baseline.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dtype/operands.h"
#include "math/tile.h"

namespace kvasir {

using DecodeFn = void (*)(const std::byte* src, float* dst, int64_t n);
using DotFn = float (*)(const std::byte* row, const std::byte* act, int64_t n);

/// y[t][r] = dot(w row r, x[t]) + bias[r] for rows in [row_begin, row_end) and all tokens.
struct MatmulArgs {
  const std::byte* w = nullptr;  // [rows][cols], or [cols][rows] when conv1d (GPT-2's Conv1D)
  size_t row_bytes = 0;          // bytes between stored rows
  RowForm form = RowForm::f32;
  bool conv1d = false;
  DecodeFn decode = nullptr;
  DotFn dot = nullptr;
  int block_elems = 1, block_bytes = 0;  // of the codec; for RowForm::other only
  int64_t rows = 0, cols = 0;            // outputs, inputs
  const float* x = nullptr;              // [tokens][x_stride]
  int64_t x_stride = 0;
  const ActBlock* act = nullptr;        // [tokens][cols / 32]: x as integer weights want it
  const std::byte* arranged = nullptr;  // [tokens][arranged_bytes(cols)]: the same of up to kFewIntegerTokens, or null
  float* y = nullptr;                   // [tokens][y_stride]
  int64_t y_stride = 0;
  int tokens = 0;
  const float* bias = nullptr;  // [rows] or null
  int64_t row_begin = 0, row_end = 0;
  float* panel = nullptr;  // scratch of kPanelRows * cols floats
};

/// Weight rows widened at a time; a chunk of a matmul never spans more.
inline constexpr int kPanelRows = 32;
/// Up to so many tokens float weights, and integer ones, are read straight from the file's form, without a panel.
inline constexpr int kFewTokens = 4, kFewIntegerTokens = 8;

/// The largest Codec::block_elems.
inline constexpr int kMaxBlockElems = 256;

/// The most tokens of one attend() call, and the queries that it takes at once.
inline constexpr int kMaxAttendTokens = 32, kAttendBlock = 4;

/// A token of a sequence: its position and, one after the other, a group's heads.
struct AttendRow {
  int pos = 0;
  const float* q = nullptr;
  float* out = nullptr;
};

/// Causal attention of `tokens` consecutive positions and one KV head over tiles, for the `group` query heads it
/// serves; or of tokens of any sequences that hold these tiles (`rows`).
struct AttendArgs {
  const Tile* tiles = nullptr;  // ascending
  int tile_count = 0;
  int head_dim = 0, group = 0, tokens = 0;
  int first_pos = 0;                  // position of token 0
  int window = 0, sinks = 0;          // what token t sees from there: seen_rows()
  float scale = 0;                    // applied after the dot
  float cap = 0;                      // then a score s becomes cap * tanh(s / cap); 0: it stays
  size_t k_offset = 0, v_offset = 0;  // bytes from a row's start to this KV head
  RowForm k_form = RowForm::f32, v_form = RowForm::f32;
  DecodeFn decode_k = nullptr, decode_v = nullptr;
  const float *first_k = nullptr, *first_v = nullptr;  // [64][head_dim]: the tile at position 0 where not as stored
  /// [group]: a score for attending to nothing, which takes its share of the weights and has no V; null: none.
  const float* null_scores = nullptr;
  const float* q = nullptr;  // [tokens][q_stride], the group's heads one after the other
  float* out = nullptr;      // [tokens][out_stride], likewise
  int64_t q_stride = 0, out_stride = 0;
  const AttendRow* rows = nullptr;  // [tokens]: instead of first_pos, q and out; null: those
  /// [tokens][group][2 + head_dim]: what is known of the queries between two calls, for tiles that not all tokens have;
  /// null: the call is the only one.
  float* states = nullptr;
  bool begun = false, ends = true;  // of the calls that share states: it is not the first, it is the last
  float* scratch = nullptr;         // attend_scratch_floats(...) floats
};

/// Scratch of one attend() call; of no tokens: where states are given.
constexpr int64_t attend_scratch_floats(int head_dim, int group, int tokens) {
  return 4 * int64_t{kTilePositions} * head_dim + int64_t{kAttendBlock} * (kTilePositions + head_dim) +
         int64_t{group} * tokens * (head_dim + 2);
}

/// What attend_tile() left of some queries: their largest score, the sum of their exponentials and their weighed V. A
/// score for nothing is a tile before the others: {score, 1, 0, ...}.
struct MergeArgs {
  float* states = nullptr;  // [tile_count][queries][2 + head_dim]; the first tile's are overwritten
  int tile_count = 0, queries = 0, head_dim = 0;
  float* out = nullptr;  // [queries][head_dim]
};

/// Rotates the first `channels` of `heads` heads of one row by the angles whose cosines and sines are given,
/// channels / 2 of each.
struct RopeArgs {
  float* row = nullptr;
  int heads = 0, head_dim = 0, channels = 0;
  const float* cos = nullptr;
  const float* sin = nullptr;
  bool interleaved = false;  // pairs (2i, 2i+1) instead of (i, i + channels/2)
};

/// What an MLP does to each element of its gate: silu(x) = x sigmoid(x); GELU by the tanh formula or by erf; max(x,
/// 0)^2; sigmoid alone. clamped_swiglu takes an `up`, and is a sigmoid(1.702 a) (u + 1) with a = min(gate, 7) and u =
/// up clamped to -7..7 (gpt-oss).
enum class Activation { silu, gelu_tanh, gelu_erf, relu_squared, sigmoid, clamped_swiglu };

/// Logits as intervals and weights: depth = min((best - x) * scale, limit), +infinity where x < least; the interval is
/// depth rounded to an integer, the weight is e^(distance to it * interval) by the series up to the fourth power, which
/// is exact to 8e-15 for |distance * interval| <= 1/256.
struct WeighArgs {
  const float* x = nullptr;
  int64_t n = 0;  // a multiple of 16
  float least = 0;
  double best = 0, scale = 1, limit = 0, interval = 1;
  double* rounded = nullptr;  // [n]: the interval is the lowest 32 bits
  double* weights = nullptr;  // [n]
};
/// Added to a number below 2^31, it leaves that number rounded to an integer in the lowest bits.
inline constexpr double kWeighRounder = 0x1.8p52;

/// Integer weights. Tables that differ only in the instructions for products of bytes differ in these alone.
struct IntegerKernels {
  /// x is read as `arranged` where it is given, else as `act`. Never conv1d.
  void (*matmul)(const MatmulArgs&);
  /// encode_act of dtype/operands.h.
  void (*encode_act)(const float* x, ActBlock* out, int64_t n);
  /// One token's `parts` blocks to arranged_bytes(); what only this table reads.
  void (*arrange)(Arrangement, const ActBlock* x, int64_t parts, std::byte* out);
  /// Runs `rounds` rounds of products of bytes in registers, summed in 32 bits as matmul does; returns the operations
  /// done (two a product). For measuring.
  double (*int8_ops)(int64_t rounds);
};

struct Kernels {
  const char* name;
  IntegerKernels integer;
  /// Float weights.
  void (*matmul)(const MatmulArgs&);
  void (*attend)(const AttendArgs&);
  /// One token and the first of its tiles only, which it must see some of: states [group][2 + head_dim]. Tiles can then
  /// be computed on different threads. A second tile is the one to fetch meanwhile.
  void (*attend_tile)(const AttendArgs&, float* states);
  /// The rest of attend(): the tiles merged, ascending.
  void (*merge_tiles)(const MergeArgs&);
  void (*rope)(const RopeArgs&);
  /// y = x / sqrt(mean(x^2) + eps) * gain
  void (*rms_norm)(const float* x, const float* gain, float eps, float* y, int64_t n);
  /// y = (x - mean) / sqrt(var + eps) * gain + bias; a null bias is 0
  void (*layer_norm)(const float* x, const float* gain, const float* bias, float eps, float* y, int64_t n);
  /// gate = f(gate) * up, or f(gate) where `up` is null
  void (*activate)(Activation f, float* gate, const float* up, int64_t n);
  /// x = x + y
  void (*add)(float* x, const float* y, int64_t n);
  /// x = x + s * y, rounded once
  void (*add_scaled)(float* x, float s, const float* y, int64_t n);
  /// x = s * x
  void (*scale)(float* x, float s, int64_t n);
  /// x = cap * tanh(x / cap)
  void (*soft_cap)(float* x, float cap, int64_t n);
  /// x = e^(x - max) / sum
  void (*softmax)(float* x, int64_t n);
  void (*weigh_logits)(const WeighArgs&);
  /// Runs `rounds` rounds of independent FMAs in registers; returns the operations done (two per FMA). For measuring.
  double (*fma_flops)(int64_t rounds);
  /// Reads n floats as fast as it can; returns some sum of them. For measuring.
  float (*read_all)(const float* x, int64_t n);
};

extern const Kernels kScalarKernels;
#if defined(__x86_64__)
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;
extern const IntegerKernels kAvx2VnniIntegers;
extern const IntegerKernels kAvx512VnniIntegers;
#elif defined(__aarch64__)
extern const Kernels kNeonKernels;
extern const IntegerKernels kNeonDotprodIntegers;
#endif

}  // namespace kvasir
