// q6_k: 256 integers of 6 bits, -32 to 31, in 16 groups with a signed 8-bit scale each, and one f16 unit of the scales.
// Source: ggml-org/ggml, block_q6_K and dequantize_row_q6_K.
#include <limits>

#include "dtype/integer_row_ops.h"

namespace kvasir {

const Codec& codec_q6_k();

namespace {

constexpr int kElems = 256, kBytes = 210, kGroup = 16, kGroups = kElems / kGroup, kMiddle = 32;
constexpr int kHighs = 128, kScales = 192, kUnit = 208;  // byte offsets in a block; the low bits come first

// The place of element e: each half of 128 elements has 64 bytes of two low nibbles and 32 bytes of four pairs of high
// bits.
struct Place {
  int low, low_shift, high, high_shift;
};
constexpr Place place_of(int e) {
  const int half = e / 128, in_half = e % 128;
  return {half * 64 + in_half % 64, in_half / 64 * 4, kHighs + half * 32 + in_half % 32, in_half / 32 * 2};
}

int scale_at(const std::byte* block, int group) { return static_cast<int8_t>(block[kScales + group]); }

// The group's scale is multiplied into w, at most 4096: 32 products with 8 bits stay below 2^24.
IntegerBlock read(const std::byte* block, int part) {
  IntegerBlock out{.w = {}, .scale = half_at(block + kUnit)};
  for (int j = 0; j < kActElems; ++j) {
    const int e = part * kActElems + j;
    const Place at = place_of(e);
    const int low = std::to_integer<int>(block[at.low]) >> at.low_shift & 15;
    const int high = std::to_integer<int>(block[at.high]) >> at.high_shift & 3;
    out.w[j] = scale_at(block, e / kGroup) * ((low | high << 4) - kMiddle);
  }
  return out;
}

// ---- the search ---------------------------------------------------------------------------------------------------

void round_to(double scale, const float* x, int* w) {
  const double inverse = scale != 0 ? 1 / scale : 0;
  for (int j = 0; j < kGroup; ++j)  // shifted to positive values, so that truncation after adding 0.5 rounds
    w[j] = static_cast<int>(std::clamp(x[j] * inverse + kMiddle, 0.0, 2.0 * kMiddle - 1) + 0.5) - kMiddle;
}

double squared_error(double scale, const float* x, const int* w) {
  double error = 0;
  for (int j = 0; j < kGroup; ++j) error += (scale * w[j] - x[j]) * (scale * w[j] - x[j]);
  return error;
}

// Tries steps from coarser than the range requires to slightly finer, each improved by least squares. On normally
// distributed numbers the error is a tenth below that of the range's own step.
double best_scale(const float* x) {
  const double extreme = range_of(x, kGroup).extreme();
  double best = 0, least = std::numeric_limits<double>::infinity();
  for (double steps = kMiddle - 3; steps <= kMiddle + 1 && extreme != 0; steps += 0.5) {
    int w[kGroup];
    round_to(extreme / -steps, x, w);
    double along = 0, length = 0;
    for (int j = 0; j < kGroup; ++j) along += double{x[j]} * w[j], length += w[j] * w[j];
    const double scale = along / length;  // the extreme's w is not 0
    round_to(scale, x, w);
    const double error = squared_error(scale, x, w);
    if (error < least) least = error, best = scale;
  }
  return best;
}

// Tries the 8-bit scales at and next to the wanted one and returns the one with the least error; `w` receives its
// integers.
int best_multiple(const float* x, double wanted, double unit, int* w) {
  constexpr int kLeast = -128, kMost = 127;
  const int center = unit != 0 ? static_cast<int>(std::lround(std::clamp(wanted / unit, -128.0, 127.0))) : 0;
  int best = 0;
  if (wanted == 0) return 0;  // all zeros, such as the padding of heads in a KV row
  double least = std::numeric_limits<double>::infinity();
  for (int scale = std::max(center - 1, kLeast); scale <= std::min(center + 1, kMost); ++scale) {
    int rounded[kGroup];
    round_to(unit * scale, x, rounded);
    const double error = squared_error(unit * scale, x, rounded);
    if (error >= least) continue;
    least = error, best = scale;
    std::copy(rounded, rounded + kGroup, w);
  }
  return best;
}

int64_t encode_block(const float* x, std::byte* block) {
  std::fill_n(block, kBytes, std::byte{});
  if (std::isnan(range_of(x, kElems).low)) return put_half(NAN, block + kUnit);
  double scales[kGroups], largest = 0;
  for (int g = 0; g < kGroups; ++g) {
    scales[g] = best_scale(x + g * kGroup);
    if (std::fabs(scales[g]) > std::fabs(largest)) largest = scales[g];
  }
  const int64_t saturated = put_half(static_cast<float>(largest / -128), block + kUnit);  // largest becomes -128
  for (int g = 0; g < kGroups; ++g) {
    int w[kGroup] = {};
    const int scale = best_multiple(x + g * kGroup, scales[g], half_at(block + kUnit), w);
    block[kScales + g] = static_cast<std::byte>(scale);
    for (int j = 0; j < kGroup; ++j) {
      const Place at = place_of(g * kGroup + j);
      const int value = w[j] + kMiddle;
      block[at.low] |= static_cast<std::byte>((value & 15) << at.low_shift);
      block[at.high] |= static_cast<std::byte>(value >> 4 << at.high_shift);
    }
  }
  return saturated;
}

int64_t encode(const float* src, std::byte* dst, int64_t n) {
  int64_t saturated = 0;
  for (int64_t i = 0; i < n; i += kElems, dst += kBytes) saturated += encode_block(src + i, dst);
  return saturated;
}

using RowOps = IntegerRowOps<kElems, kBytes, false, read>;

}  // namespace

const Codec& codec_q6_k() {
  static constexpr Codec codec{.name = "q6_k",
                               .file_name = "Q6_K",
                               .summary = "blocks of 256 values of 6 bits, a scale of 8 bits for each 16",
                               .block_elems = kElems,
                               .block_bytes = kBytes,
                               .act = Act::q8,
                               .form = RowForm::q6_k,
                               .encode = encode,
                               .decode = RowOps::decode,
                               .dot = RowOps::dot};
  return codec;
}

}  // namespace kvasir
