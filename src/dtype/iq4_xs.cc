// iq4_xs: 256 indices of 4 bits into iq4_nl's table, in 8 parts with a signed 6-bit scale each, and one f16 unit of the
// scales. Source: ggml-org/ggml, block_iq4_xs and dequantize_row_iq4_xs.
#include <limits>

#include "dtype/iq4.h"

namespace kvasir {

const Codec& codec_iq4_xs();

namespace {

constexpr int kElems = 256, kParts = kElems / kActElems, kBytes = 136, kMiddle = 32;
constexpr int kHighs = 2, kLows = 4, kIndices = 8;  // byte offsets in a block; the unit comes first

// Nibble `part` of the lows and bits 2 part and 2 part + 1 of the highs.
int scale_at(const std::byte* block, int part) {
  const int low = std::to_integer<int>(block[kLows + part / 2]) >> part % 2 * 4 & 15;
  return (low | (std::to_integer<int>(block[kHighs + part / 4]) >> part % 4 * 2 & 3) << 4) - kMiddle;
}
void put_scale(int scale, std::byte* block, int part) {
  const int stored = scale + kMiddle;
  block[kLows + part / 2] |= static_cast<std::byte>((stored & 15) << part % 2 * 4);
  block[kHighs + part / 4] |= static_cast<std::byte>(stored >> 4 << part % 4 * 2);
}

// The product of unit and scale is exact: 11 bits times 6.
IntegerBlock read(const std::byte* block, int part) {
  IntegerBlock out{.w = {}, .scale = half_at(block) * static_cast<float>(scale_at(block, part))};
  table16::unpack(block + kIndices + part * 16, iq4::kTable, out.w);
  return out;
}

// Tries the integer scales at and next to the wanted one and writes the best with its indices.
void encode_part(const float* x, const float* weight, double wanted, std::byte* block, int part) {
  const float unit = half_at(block);
  constexpr double kLow = -kMiddle, kHigh = kMiddle - 1;
  const int center = unit != 0 ? static_cast<int>(std::lround(std::clamp(wanted / unit, kLow, kHigh))) : 0;
  int best = 0, best_index[kActElems] = {};
  double least = std::numeric_limits<double>::infinity();
  for (int scale = std::max(center - 1, -kMiddle); scale <= std::min(center + 1, kMiddle - 1); ++scale) {
    int index[kActElems];
    const double error = iq4::round_to(unit * static_cast<float>(scale), x, weight, index);
    if (!(error < least)) continue;
    least = error, best = scale;
    std::copy(index, index + kActElems, best_index);
  }
  put_scale(best, block, part);
  nibbles::pack<4>(best_index, block + kIndices + part * 16);
}

int64_t encode_by(const float* src, const float* importance, std::byte* dst, int64_t n) {
  int64_t saturated = 0;
  for (int64_t i = 0; i < n; i += kElems, dst += kBytes) {
    const ErrorWeights<kElems> weights(src, importance, i);
    double scales[kParts], largest = 0;
    for (int p = 0; p < kParts; ++p) {
      scales[p] = iq4::best_scale(src + i + p * kActElems, weights.of + p * kActElems);
      if (!(std::fabs(scales[p]) <= std::fabs(largest))) largest = scales[p];
      if (std::isnan(scales[p])) break;
    }
    std::fill_n(dst, kBytes, std::byte{});
    // The largest scale becomes the lowest integer, of which there is one more than above 0.
    saturated += put_half(static_cast<float>(largest / -kMiddle), dst);
    for (int p = 0; p < kParts && !std::isnan(largest); ++p)
      encode_part(src + i + p * kActElems, weights.of + p * kActElems, scales[p], dst, p);
  }
  return saturated;
}

using RowOps = IntegerRowOps<kElems, kBytes, false, read>;

}  // namespace

const Codec& codec_iq4_xs() {
  static constexpr Codec codec{.name = "iq4_xs",
                               .file_name = "IQ4_XS",
                               .summary = "blocks of 256 values of 4 bits from a table, a scale of 6 bits for each 32",
                               .block_elems = kElems,
                               .block_bytes = kBytes,
                               .act = Act::q8,
                               .form = RowForm::iq4_xs,
                               .encode = encode_alike<encode_by>,
                               .encode_by = encode_by,
                               .decode = RowOps::decode,
                               .dot = RowOps::dot};
  return codec;
}

}  // namespace kvasir
