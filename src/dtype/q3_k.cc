// q3_k: 256 integers of 3 bits, -4 to 3, in 16 groups with a signed 6-bit scale each, and one f16 unit of the scales.
// Source: ggml-org/ggml, block_q3_K and dequantize_row_q3_K.
#include "dtype/signed_search.h"

namespace kvasir {

const Codec& codec_q3_k();

namespace {

using namespace signed_search;

constexpr int kBytes = 110, kMiddle = 4, kScaleMiddle = 32;
constexpr int kLows = 32, kScales = 96, kUnit = 108;  // byte offsets in a block; the third bits come first

// Byte e % 32 of the third bits has element e's in bit e / 32. Each half of 128 elements has 32 bytes of four pairs of
// low bits.
int get(const std::byte* block, int e) {
  const int low = std::to_integer<int>(block[kLows + e / 128 * 32 + e % 32]) >> e / 32 % 4 * 2 & 3;
  return low | (std::to_integer<int>(block[e % 32]) >> e / 32 & 1) << 2;
}
void put(int value, std::byte* block, int e) {
  block[kLows + e / 128 * 32 + e % 32] |= static_cast<std::byte>((value & 3) << e / 32 % 4 * 2);
  block[e % 32] |= static_cast<std::byte>(value >> 2 << e / 32);
}

// Byte g % 8 of the scales has the low four bits of scale g, of g >= 8 in its high nibble; byte 8 + g % 4 has the high
// two bits at 2 (g / 4).
int scale_at(const std::byte* block, int g) {
  const int low = std::to_integer<int>(block[kScales + g % 8]) >> g / 8 * 4 & 15;
  return (low | (std::to_integer<int>(block[kScales + 8 + g % 4]) >> g / 4 * 2 & 3) << 4) - kScaleMiddle;
}
void put_scale(int scale, std::byte* block, int g) {
  const int stored = scale + kScaleMiddle;
  block[kScales + g % 8] |= static_cast<std::byte>((stored & 15) << g / 8 * 4);
  block[kScales + 8 + g % 4] |= static_cast<std::byte>(stored >> 4 << g / 4 * 2);
}

// The group's scale is multiplied into w, at most 128.
IntegerBlock read(const std::byte* block, int part) {
  IntegerBlock out{.w = {}, .scale = half_at(block + kUnit)};
  for (int j = 0; j < kActElems; ++j) {
    const int e = part * kActElems + j;
    out.w[j] = scale_at(block, e / kGroup) * (get(block, e) - kMiddle);
  }
  return out;
}

int64_t encode_by(const float* src, const float* importance, std::byte* dst, int64_t n) {
  int64_t saturated = 0;
  for (int64_t i = 0; i < n; i += kElems, dst += kBytes) {
    const ErrorWeights<kElems> weights(src, importance, i);
    Search<kMiddle, kScaleMiddle - 1>::Groups groups;
    std::fill_n(dst, kBytes, std::byte{});
    saturated += Search<kMiddle, kScaleMiddle - 1>::fit(src + i, weights.of, dst + kUnit, &groups);
    for (int g = 0; g < kGroups; ++g) put_scale(groups.scale[g], dst, g);
    for (int e = 0; e < kElems; ++e) put(groups.w[e] + kMiddle, dst, e);
  }
  return saturated;
}

using RowOps = IntegerRowOps<kElems, kBytes, false, read>;

}  // namespace

const Codec& codec_q3_k() {
  static constexpr Codec codec{.name = "q3_k",
                               .file_name = "Q3_K",
                               .summary = "blocks of 256 values of 3 bits, a scale of 6 bits for each 16",
                               .block_elems = kElems,
                               .block_bytes = kBytes,
                               .act = Act::q8,
                               .form = RowForm::q3_k,
                               .encode = encode_alike<encode_by>,
                               .encode_by = encode_by,
                               .decode = RowOps::decode,
                               .dot = RowOps::dot};
  return codec;
}

}  // namespace kvasir
