// q4_1: 32 numbers of 4 bits, 0 to 15, one f16 scale and one f16 minimum. Source: ggml-org/ggml, block_q4_1.
#include "dtype/integer_rows.h"
#include "dtype/nibbles.h"

namespace kvasir {

const Codec& codec_q4_1();

namespace {

constexpr int kElems = 32, kBytes = 20, kMost = 15;

IntegerBlock read(const std::byte* block, int) {
  IntegerBlock out{.w = {}, .scale = half_at(block), .offset = half_at(block + 2)};
  unpack_nibbles(block + 4, out.w);
  return out;
}

int64_t encode(const float* src, std::byte* dst, int64_t n) {
  int64_t saturated = 0;
  for (int64_t i = 0; i < n; i += kElems, dst += kBytes) {
    const Range range = range_of(src + i, kElems);
    saturated += put_half((range.high - range.low) / kMost, dst) + put_half(range.low, dst + 2);
    const float d = half_at(dst), low = half_at(dst + 2);
    int w[kElems];
    for (int j = 0; j < kElems; ++j) w[j] = steps(src[i + j] - low, d, 0, kMost);
    pack_nibbles(w, dst + 4);
  }
  return saturated;
}

using Rows = IntegerRows<kElems, kBytes, true, read>;

}  // namespace

const Codec& codec_q4_1() {
  static constexpr Codec codec{"q4_1",         "Q4_1", kElems,       kBytes,   Act::q8,
                               RowForm::other, encode, Rows::decode, Rows::dot};
  return codec;
}

}  // namespace kvasir
