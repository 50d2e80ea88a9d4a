// q4_0: 32 numbers of 4 bits, -8 to 7, and one f16 scale. Source: ggml-org/ggml, block_q4_0.
#include "dtype/integer_rows.h"
#include "dtype/nibbles.h"

namespace kvasir {

const Codec& codec_q4_0();

namespace {

constexpr int kElems = 32, kBytes = 18, kMiddle = 8;

IntegerBlock read(const std::byte* block, int) {
  IntegerBlock out{.w = {}, .scale = half_at(block)};
  unpack_nibbles(block + 2, out.w);
  for (int32_t& w : out.w) w -= kMiddle;
  return out;
}

// The value furthest from 0 becomes -kMiddle exactly: there is one more number below 0 than above.
int64_t encode(const float* src, std::byte* dst, int64_t n) {
  int64_t saturated = 0;
  for (int64_t i = 0; i < n; i += kElems, dst += kBytes) {
    saturated += put_half(range_of(src + i, kElems).extreme() / -kMiddle, dst);
    const float d = half_at(dst);
    int w[kElems];
    for (int j = 0; j < kElems; ++j) w[j] = kMiddle + steps(src[i + j], d, -kMiddle, kMiddle - 1);
    pack_nibbles(w, dst + 2);
  }
  return saturated;
}

using Rows = IntegerRows<kElems, kBytes, false, read>;

}  // namespace

const Codec& codec_q4_0() {
  static constexpr Codec codec{"q4_0", "Q4_0", kElems, kBytes, Act::q8, RowForm::q4_0, encode, Rows::decode, Rows::dot};
  return codec;
}

}  // namespace kvasir
