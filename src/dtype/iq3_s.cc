// iq3_s: the low bytes of 64 codebook indices, 8 bytes with their ninth bits, 32 bytes of signs, 8 scales of four bits.
// Source: ggml-org/ggml, block_iq3_s and dequantize_row_iq3_s.
#include "dtype/codebook.h"
#include "dtype/iq3_grids.h"

namespace kvasir {

const Codec& codec_iq3_s();

namespace {

using namespace codebook;

constexpr int kBytes = 110;

constexpr int kLows = 2, kHighs = 66, kSigns = 74, kScales = 106;
constexpr int kLevels[] = {1, 3, 5, 7, 9, 11, 13, 15};

IntegerBlock read(const std::byte* block, int part) {
  IntegerBlock out{.w = {}, .scale = half_at(block)};
  const int scale = 2 * (byte_at(block + kScales + part / 2) >> part % 2 * 4 & 15) + 1;
  const int highs = byte_at(block + kHighs + part);
  for (int i = 0; i < 8; ++i) {
    const int entry = byte_at(block + kLows + 8 * part + i) | (highs >> i & 1) << 8;
    const int signs = byte_at(block + kSigns + 4 * part + i / 2) >> i % 2 * 4;
    unpack(kGrid512of3[entry], kLevels, signs, scale, out.w + 4 * i);
  }
  return out;
}

using RowOps = IntegerRowOps<kElems, kBytes, false, read>;

}  // namespace

const Codec& codec_iq3_s() {
  static constexpr Codec codec = codebook::codec<RowOps>(
      "iq3_s", "IQ3_S", "blocks of 256 values: codebook of 512 entries of 4, a scale of 4 bits for each 32", kBytes);
  return codec;
}

}  // namespace kvasir
