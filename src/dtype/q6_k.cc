// q6_k: 256 integers of 6 bits, -32 to 31, in 16 groups with a signed 8-bit scale each, and one f16 unit of the scales.
// Source: ggml-org/ggml, block_q6_K and dequantize_row_q6_K.
#include "dtype/signed_search.h"

namespace kvasir {

const Codec& codec_q6_k();

namespace {

using namespace signed_search;

constexpr int kBytes = 210, kMiddle = 32;
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

int64_t encode_block(const float* x, const float* weight, std::byte* block) {
  Search<kMiddle, 127>::Groups groups;
  std::fill_n(block, kBytes, std::byte{});
  const int64_t saturated = Search<kMiddle, 127>::fit(x, weight, block + kUnit, &groups);
  if (std::isnan(half_at(block + kUnit))) return saturated;
  for (int g = 0; g < kGroups; ++g) block[kScales + g] = static_cast<std::byte>(groups.scale[g]);
  for (int e = 0; e < kElems; ++e) {
    const Place at = place_of(e);
    const int value = groups.w[e] + kMiddle;
    block[at.low] |= static_cast<std::byte>((value & 15) << at.low_shift);
    block[at.high] |= static_cast<std::byte>(value >> 4 << at.high_shift);
  }
  return saturated;
}

int64_t encode_by(const float* src, const float* importance, std::byte* dst, int64_t n) {
  int64_t saturated = 0;
  for (int64_t i = 0; i < n; i += kElems, dst += kBytes)
    saturated += encode_block(src + i, ErrorWeights<kElems>(src, importance, i).of, dst);
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
                               .encode = encode_alike<encode_by>,
                               .encode_by = encode_by,
                               .decode = RowOps::decode,
                               .dot = RowOps::dot};
  return codec;
}

}  // namespace kvasir
