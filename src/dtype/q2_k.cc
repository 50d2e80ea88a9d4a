// q2_k: 256 integers of 2 bits in 16 groups with a scale and a minimum of 4 bits each, and one f16 unit of each.
// Source: ggml-org/ggml, block_q2_K and dequantize_row_q2_K.
#include "dtype/affine_search.h"

namespace kvasir {

const Codec& codec_q2_k();

namespace {

using affine_search::Multiples;

constexpr int kElems = 256, kGroup = 16, kGroups = 16, kBytes = 84, kMost = 3, kMostScale = 15;
constexpr int kLows = 16, kUnits = 80;  // byte offsets in a block; the scales and minimums come first

// Each half of 128 elements has 32 bytes of four pairs of bits.
constexpr int byte_of(int e) { return kLows + e / 128 * 32 + e % 32; }
constexpr int shift_of(int e) { return e / 32 % 4 * 2; }

// The group's scale is multiplied into w, at most 45.
IntegerBlock read(const std::byte* block, int part) {
  IntegerBlock out{.w = {}, .scale = half_at(block + kUnits), .offset = -half_at(block + kUnits + 2)};
  for (int j = 0; j < kActElems; ++j) {
    const int e = part * kActElems + j, group = std::to_integer<int>(block[e / kGroup]);
    out.w[j] = (group & 15) * (std::to_integer<int>(block[byte_of(e)]) >> shift_of(e) & 3);
    out.offsets[j / kGroup] = group >> 4;
  }
  return out;
}

int64_t encode_by(const float* src, const float* importance, std::byte* dst, int64_t n) {
  int64_t saturated = 0;
  for (int64_t i = 0; i < n; i += kElems, dst += kBytes) {
    const ErrorWeights<kElems> weights(src, importance, i);
    std::array<Multiples, kGroups> groups{};
    int w[kElems];
    std::fill_n(dst, kBytes, std::byte{});
    saturated += affine_search::Search<kGroup, kMostScale>::fit(src + i, weights.of, kMost, dst + kUnits, &groups, w);
    for (size_t g = 0; g < kGroups; ++g) dst[g] = static_cast<std::byte>(groups[g].scale | groups[g].minimum << 4);
    for (int e = 0; e < kElems; ++e) dst[byte_of(e)] |= static_cast<std::byte>(w[e] << shift_of(e));
  }
  return saturated;
}

using RowOps = IntegerRowOps<kElems, kBytes, true, read>;

}  // namespace

const Codec& codec_q2_k() {
  static constexpr Codec codec{.name = "q2_k",
                               .file_name = "Q2_K",
                               .summary = "blocks of 256 values of 2 bits, a scale and a minimum of 4 bits for each 16",
                               .block_elems = kElems,
                               .block_bytes = kBytes,
                               .act = Act::q8,
                               .form = RowForm::q2_k,
                               .encode = encode_alike<encode_by>,
                               .encode_by = encode_by,
                               .decode = RowOps::decode,
                               .dot = RowOps::dot};
  return codec;
}

}  // namespace kvasir
