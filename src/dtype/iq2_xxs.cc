// iq2_xxs: 8 numbers of 8 bytes. Each has four codebook bytes, then 28 sign bits and a scale of four bits. Source:
// ggml-org/ggml, block_iq2_xxs and dequantize_row_iq2_xxs.
#include "dtype/codebook.h"
#include "dtype/iq2_grids.h"

namespace kvasir {

const Codec& codec_iq2_xxs();

namespace {

using namespace codebook;

constexpr int kBytes = 66;

// Scales are odd eighths.
IntegerBlock read(const std::byte* block, int part) {
  IntegerBlock out{.w = {}, .scale = half_at(block) / 8};
  const std::byte* const at = block + 2 + 8 * part;
  const auto rest = number_at<uint32_t>(at + 4);
  for (int i = 0; i < 4; ++i)
    unpack(kGrid256[byte_at(at + i)], kLevels2, even_signs(rest >> 7 * i & 127), 2 * static_cast<int>(rest >> 28) + 1,
           out.w + 8 * i);
  return out;
}

using RowOps = IntegerRowOps<kElems, kBytes, false, read>;

}  // namespace

const Codec& codec_iq2_xxs() {
  static constexpr Codec codec = codebook::codec<RowOps>(
      "iq2_xxs", "IQ2_XXS", "blocks of 256 values: codebook of 256 entries, a scale of 4 bits for each 32", kBytes);
  return codec;
}

}  // namespace kvasir
