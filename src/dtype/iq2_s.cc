// iq2_s: the low bytes of 32 codebook indices, 32 bytes of signs, 8 bytes with the indices' high bits, 16 scales of
// four bits. Source: ggml-org/ggml, block_iq2_s and dequantize_row_iq2_s.
#include "dtype/codebook.h"
#include "dtype/iq2_grids.h"

namespace kvasir {

const Codec& codec_iq2_s();

namespace {

using namespace codebook;

constexpr int kBytes = 82;

constexpr int kLows = 2, kSigns = 34, kHighs = 66, kScales = 74;

// Scales are odd eighths.
IntegerBlock read(const std::byte* block, int part) {
  IntegerBlock out{.w = {}, .scale = half_at(block) / 8};
  const int scales = byte_at(block + kScales + part), highs = byte_at(block + kHighs + part);
  for (int i = 0; i < 4; ++i) {
    const int entry = byte_at(block + kLows + 4 * part + i) | (highs >> 2 * i & 3) << 8;
    unpack(kGrid1024[entry], kLevels2, byte_at(block + kSigns + 4 * part + i), 2 * (scales >> i / 2 * 4 & 15) + 1,
           out.w + 8 * i);
  }
  return out;
}

using RowOps = IntegerRowOps<kElems, kBytes, false, read>;

}  // namespace

const Codec& codec_iq2_s() {
  static constexpr Codec codec = codebook::codec<RowOps>(
      "iq2_s", "IQ2_S", "blocks of 256 values: codebook of 1,024 entries, a scale of 4 bits for each 16", kBytes);
  return codec;
}

}  // namespace kvasir
