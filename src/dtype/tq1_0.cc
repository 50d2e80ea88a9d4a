// tq1_0: 256 integers -1 to 1, five in a byte, and one f16 scale. Source: ggml-org/ggml, block_tq1_0 and
// dequantize_row_tq1_0.
#include "dtype/codebook.h"

namespace kvasir {

const Codec& codec_tq1_0();

namespace {

using namespace codebook;

constexpr int kBytes = 54, kUnit = 52;

// A byte is a fraction of 256 whose digits to base 3 are the integers plus 1.
int digit(int byte, int place) {
  for (int i = 0; i < place; ++i) byte = byte * 3 & 255;
  return byte * 3 >> 8;
}

// 32 bytes have the first 160 elements, 32 in the first digits, 32 in the second ones, ...; 16 bytes have the next 80,
// and four bytes the last 16, in four digits each.
int get(const std::byte* block, int e) {
  constexpr int kSecond = 160, kThird = 240;
  if (e < kSecond) return digit(byte_at(block + e % 32), e / 32);
  if (e < kThird) return digit(byte_at(block + 32 + (e - kSecond) % 16), (e - kSecond) / 16);
  return digit(byte_at(block + 48 + (e - kThird) % 4), (e - kThird) / 4);
}

IntegerBlock read(const std::byte* block, int part) {
  IntegerBlock out{.w = {}, .scale = half_at(block + kUnit)};
  for (int j = 0; j < kActElems; ++j) out.w[j] = get(block, part * kActElems + j) - 1;
  return out;
}

using RowOps = IntegerRowOps<kElems, kBytes, false, read>;

}  // namespace

const Codec& codec_tq1_0() {
  static constexpr Codec codec = codebook::codec<RowOps>(
      "tq1_0", "TQ1_0", "blocks of 256 values -1, 0 or 1, five in a byte, with a scale", kBytes);
  return codec;
}

}  // namespace kvasir
