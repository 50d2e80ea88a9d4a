// The table of kernels: everything that is computed per element. There is one table per CPU target, and all give the
// same bits. docs/numerics.md defines the order of every sum; the scalar table is the plain reference that tests
// compare the others with. Arguments are plain data: this header is also compiled for wide CPUs, so nothing inline may
// end up in the baseline.
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
  const std::byte* w = nullptr;  // [rows, cols], or [cols, rows] if conv1d (GPT-2's Conv1D)
  size_t row_bytes = 0;          // bytes between stored rows
  RowForm form = RowForm::f32;
  bool conv1d = false;
  DecodeFn decode = nullptr;
  DotFn dot = nullptr;
  int block_elems = 1, block_bytes = 0;  // of the codec; for RowForm::other only
  int64_t rows = 0, cols = 0;            // outputs, inputs
  const float* x = nullptr;              // [tokens, x_stride]
  int64_t x_stride = 0;
  const ActBlock* act = nullptr;        // [tokens, cols / 32]: x encoded for integer weights
  const std::byte* arranged = nullptr;  // [tokens, arranged_bytes(cols)]: `act` arranged, if few tokens; or null
  float* y = nullptr;                   // [tokens, y_stride]
  int64_t y_stride = 0;
  int tokens = 0;
  const float* bias = nullptr;  // [rows] or null
  int64_t row_begin = 0, row_end = 0;
  float* panel = nullptr;  // scratch of kPanelRows * cols floats
};

/// Number of weight rows in a panel.
inline constexpr int kPanelRows = 32;
/// Largest number of tokens for which float and integer weights are read in their stored form, without a panel.
inline constexpr int kFewTokens = 4, kFewIntegerTokens = 8;

/// Upper bound of Codec::block_elems.
inline constexpr int kMaxBlockElems = 256;

/// Largest number of tokens of one attend() call, and the number of queries that it processes together.
inline constexpr int kMaxAttendTokens = 32, kAttendBlock = 4;

/// One token of any sequence: its position, and its query and output heads of one group, adjacent.
struct AttendRow {
  int pos = 0;
  const float* q = nullptr;
  float* out = nullptr;
};

/// Causal attention over tiles for one KV head and the `group` query heads that it serves: for `tokens` consecutive
/// positions of one sequence, or for tokens of any sequences that share these tiles (`rows`).
struct AttendArgs {
  const Tile* tiles = nullptr;  // ascending
  int tile_count = 0;
  int head_dim = 0, group = 0, tokens = 0;
  int first_pos = 0;                  // position of token 0
  int window = 0, sinks = 0;          // define what token t attends to: seen_rows()
  float scale = 0;                    // applied after the dot
  float cap = 0;                      // then a score s becomes cap * tanh(s / cap); 0: no cap
  size_t k_offset = 0, v_offset = 0;  // bytes from the start of a row to this KV head
  RowForm k_form = RowForm::f32, v_form = RowForm::f32;
  DecodeFn decode_k = nullptr, decode_v = nullptr;
  const float *first_k = nullptr,
              *first_v = nullptr;  // [64, head_dim]: replace the tile at position 0 if it is not used as stored
  /// [group]: null scores, which take part in the softmax and have no V; null: there are none.
  const float* null_scores = nullptr;
  const float* q = nullptr;  // [tokens, q_stride]; the group's heads are adjacent
  float* out = nullptr;      // [tokens, out_stride], likewise
  int64_t q_stride = 0, out_stride = 0;
  const AttendRow* rows = nullptr;  // [tokens]: replaces first_pos, q and out; null: those are used
  /// [tokens, group, 2 + head_dim]: the queries' states between calls, if the tiles of one attention are spread over
  /// several calls; null: this call is the only one.
  float* states = nullptr;
  bool begun = false, ends = true;  // of the calls that share states: this is not the first; this is the last
  float* scratch = nullptr;         // attend_scratch_floats(...) floats
};

/// Floats of scratch for one attend() call. If the caller provides states, tokens is 0.
constexpr int64_t attend_scratch_floats(int head_dim, int group, int tokens) {
  return 4 * int64_t{kTilePositions} * head_dim + int64_t{kAttendBlock} * (kTilePositions + head_dim) +
         int64_t{group} * tokens * (head_dim + 2);
}

/// Merges the states that attend_tile() left for some queries: largest score, sum of exponentials, weighted sum of V.
/// Null scores are a tile before the others: {score, 1, 0, ...}.
struct MergeArgs {
  float* states = nullptr;  // [tile_count, queries, 2 + head_dim]; the first tile's are overwritten
  int tile_count = 0, queries = 0, head_dim = 0;
  float* out = nullptr;  // [queries][head_dim]
};

/// Rotates the first `channels` channels of `heads` heads of one row. `cos` and `sin` have channels / 2 values each.
struct RopeArgs {
  float* row = nullptr;
  int heads = 0, head_dim = 0, channels = 0;
  const float* cos = nullptr;
  const float* sin = nullptr;
  bool interleaved = false;  // pairs (2i, 2i+1) instead of (i, i + channels/2)
};

/// The activation function of an MLP, applied to its gate: silu(x) = x sigmoid(x); GELU by the tanh formula or by erf;
/// max(x, 0)^2; sigmoid alone. clamped_swiglu requires an `up`: a sigmoid(1.702 a) (u + 1) with a = min(gate, 7) and u
/// = up clamped to -7..7 (gpt-oss).
enum class Activation { silu, gelu_tanh, gelu_erf, relu_squared, sigmoid, clamped_swiglu };

/// Turns logits into intervals and weights. depth = min((best - x) * scale, limit), or +infinity if x < least. The
/// interval is depth rounded to an integer; the weight is e^(distance to it * interval), by the series up to the fourth
/// power, which is exact to 8e-15 for |distance * interval| <= 1/256.
struct WeighArgs {
  const float* x = nullptr;
  int64_t n = 0;  // a multiple of 16
  float least = 0;
  double best = 0, scale = 1, limit = 0, interval = 1;
  double* rounded = nullptr;  // [n]: the interval is in the lowest 32 bits
  double* weights = nullptr;  // [n]
};
/// Adding this to a number below 2^31 leaves that number, rounded to an integer, in the lowest bits.
inline constexpr double kWeighRounder = 0x1.8p52;

/// Kernels of integer weights. Tables that differ only in their instructions for byte products differ only in these.
struct IntegerKernels {
  /// Reads x from `arranged` if it is given, else from `act`. Never conv1d.
  void (*matmul)(const MatmulArgs&);
  /// encode_act of dtype/operands.h.
  void (*encode_act)(const float* x, ActBlock* out, int64_t n);
  /// Arranges one token's `parts` blocks into arranged_bytes(); only this table's matmul reads the result.
  void (*arrange)(Arrangement, const ActBlock* x, int64_t parts, std::byte* out);
  /// For measuring: runs `rounds` rounds of byte products in registers, summed in 32 bits as matmul does. Returns the
  /// number of operations (two per product).
  double (*int8_ops)(int64_t rounds);
};

struct Kernels {
  const char* name;
  IntegerKernels integer;
  /// Float weights.
  void (*matmul)(const MatmulArgs&);
  void (*attend)(const AttendArgs&);
  /// Computes the first of the args' tiles for one token, which must attend to some of it: states [group, 2 +
  /// head_dim]. Tiles can then be computed on different threads. A second tile in the args is prefetched meanwhile.
  void (*attend_tile)(const AttendArgs&, float* states);
  /// The rest of attend(): merges the tiles, ascending.
  void (*merge_tiles)(const MergeArgs&);
  void (*rope)(const RopeArgs&);
  /// y = x / sqrt(mean(x^2) + eps) * gain
  void (*rms_norm)(const float* x, const float* gain, float eps, float* y, int64_t n);
  /// y = (x - mean) / sqrt(var + eps) * gain + bias; a null bias is 0
  void (*layer_norm)(const float* x, const float* gain, const float* bias, float eps, float* y, int64_t n);
  /// gate = f(gate) * up, or f(gate) if `up` is null
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
  /// For measuring: runs `rounds` rounds of independent FMAs in registers. Returns the number of operations (two per
  /// FMA).
  double (*fma_flops)(int64_t rounds);
  /// For measuring: reads n floats as fast as possible. Returns a sum of them in no defined order.
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
