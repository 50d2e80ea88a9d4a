// iq4_nl: 32 indices of 4 bits into a table of 16 integers, denser near 0, and one f16 scale. Source: ggml-org/ggml,
// block_iq4_nl.
#include "dtype/iq4.h"

namespace kvasir {

const Codec& codec_iq4_nl();

namespace {

constexpr int kBytes = 18;

IntegerBlock read(const std::byte* block, int) {
  IntegerBlock out{.w = {}, .scale = half_at(block)};
  table16::unpack(block + 2, iq4::kTable, out.w);
  return out;
}

int64_t encode_by(const float* src, const float* importance, std::byte* dst, int64_t n) {
  int64_t saturated = 0;
  for (int64_t i = 0; i < n; i += kActElems, dst += kBytes) {
    const ErrorWeights<kActElems> weights(src, importance, i);
    int index[kActElems];
    saturated += put_half(static_cast<float>(iq4::best_scale(src + i, weights.of)), dst);
    iq4::round_to(half_at(dst), src + i, weights.of, index);
    nibbles::pack<4>(index, dst + 2);
  }
  return saturated;
}

using RowOps = IntegerRowOps<kActElems, kBytes, false, read>;

}  // namespace

const Codec& codec_iq4_nl() {
  static constexpr Codec codec{.name = "iq4_nl",
                               .file_name = "IQ4_NL",
                               .summary = "blocks of 32 values of 4 bits from a table, with a scale",
                               .block_elems = kActElems,
                               .block_bytes = kBytes,
                               .act = Act::q8,
                               .form = RowForm::iq4_nl,
                               .encode = encode_alike<encode_by>,
                               .encode_by = encode_by,
                               .decode = RowOps::decode,
                               .dot = RowOps::dot};
  return codec;
}

}  // namespace kvasir
