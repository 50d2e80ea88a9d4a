// iq2_xs: 32 numbers of 16 bits, nine for the codebook and seven for signs, then 16 scales of four bits. Source:
// ggml-org/ggml, block_iq2_xs and dequantize_row_iq2_xs.
#include "dtype/codebook.h"
#include "dtype/iq2_grids.h"

namespace kvasir {

const Codec& codec_iq2_xs();

namespace {

using namespace codebook;

constexpr int kBytes = 74;

constexpr int kScales = 66;

// Scales are odd eighths.
IntegerBlock read(const std::byte* block, int part) {
  IntegerBlock out{.w = {}, .scale = half_at(block) / 8};
  const int scales = byte_at(block + kScales + part);
  for (int i = 0; i < 4; ++i) {
    const unsigned both = number_at<uint16_t>(block + 2 + 8 * part + 2 * i);
    unpack(kGrid512[both & 511], kLevels2, even_signs(both >> 9), 2 * (scales >> i / 2 * 4 & 15) + 1, out.w + 8 * i);
  }
  return out;
}

using RowOps = IntegerRowOps<kElems, kBytes, false, read>;

}  // namespace

const Codec& codec_iq2_xs() {
  static constexpr Codec codec = codebook::codec<RowOps>(
      "iq2_xs", "IQ2_XS", "blocks of 256 values: codebook of 512 entries, a scale of 4 bits for each 16", kBytes);
  return codec;
}

}  // namespace kvasir
