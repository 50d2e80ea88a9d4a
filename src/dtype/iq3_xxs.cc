// iq3_xxs: 64 codebook bytes, then for each 32 elements 28 sign bits and a scale of four bits. Source: ggml-org/ggml,
// block_iq3_xxs and dequantize_row_iq3_xxs.
#include "dtype/codebook.h"
#include "dtype/iq3_grids.h"

namespace kvasir {

const Codec& codec_iq3_xxs();

namespace {

using namespace codebook;

constexpr int kBytes = 98;

constexpr int kSigns = 66;
constexpr int kLevels[] = {4, 12, 20, 28, 36, 44, 52, 62};

// Scales are odd quarters.
IntegerBlock read(const std::byte* block, int part) {
  IntegerBlock out{.w = {}, .scale = half_at(block) / 4};
  const auto rest = number_at<uint32_t>(block + kSigns + 4 * part);
  for (int i = 0; i < 8; ++i)
    unpack(kGrid256of3[byte_at(block + 2 + 8 * part + i)], kLevels, even_signs(rest >> i / 2 * 7 & 127) >> i % 2 * 4,
           2 * static_cast<int>(rest >> 28) + 1, out.w + 4 * i);
  return out;
}

using RowOps = IntegerRowOps<kElems, kBytes, false, read>;

}  // namespace

const Codec& codec_iq3_xxs() {
  static constexpr Codec codec = codebook::codec<RowOps>(
      "iq3_xxs", "IQ3_XXS", "blocks of 256 values: codebook of 256 entries of 4, a scale of 4 bits for each 32",
      kBytes);
  return codec;
}

}  // namespace kvasir
