// tq2_0: 256 integers of 2 bits, -1 to 1 (2 can be stored), and one f16 scale. Source: ggml-org/ggml, block_tq2_0 and
// dequantize_row_tq2_0.
#include "dtype/codebook.h"

namespace kvasir {

const Codec& codec_tq2_0();

namespace {

using namespace codebook;

constexpr int kBytes = 66, kUnit = 64;

// Each half of 128 elements has 32 bytes of four pairs of bits.
IntegerBlock read(const std::byte* block, int part) {
  IntegerBlock out{.w = {}, .scale = half_at(block + kUnit)};
  for (int j = 0; j < kActElems; ++j) out.w[j] = (byte_at(block + part / 4 * 32 + j) >> part % 4 * 2 & 3) - 1;
  return out;
}

using RowOps = IntegerRowOps<kElems, kBytes, false, read>;

}  // namespace

const Codec& codec_tq2_0() {
  static constexpr Codec codec =
      codebook::codec<RowOps>("tq2_0", "TQ2_0", "blocks of 256 values -1, 0 or 1 of 2 bits with a scale", kBytes);
  return codec;
}

}  // namespace kvasir
