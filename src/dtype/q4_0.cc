// q4_0: 32 integers of 4 bits, -8 to 7, and one f16 scale. Source: ggml-org/ggml, block_q4_0.
#include "dtype/closest_scale.h"
#include "dtype/nibbles.h"

namespace kvasir {

const Codec& codec_q4_0();

namespace {

using Type = nibbles::Centered<4>;

// The first scales do not reach the number furthest from 0: it may lose up to a step, and the others lose less.
int64_t encode_kv(const float* src, std::byte* dst, int64_t n) {
  constexpr ScaleSearch kSearch{Type::kMiddle, 9, 0.25f};
  int64_t saturated = 0;
  for (int64_t i = 0; i < n; i += kActElems, dst += Type::kBytes) {
    int w[kActElems];
    saturated += encode_closest(src + i, kSearch, dst, w);
    for (int& each : w) each += Type::kMiddle;
    nibbles::pack<4>(w, dst + 2);
  }
  return saturated;
}

}  // namespace

const Codec& codec_q4_0() {
  static constexpr Codec codec{.name = "q4_0",
                               .file_name = "Q4_0",
                               .summary = "blocks of 32 values of 4 bits with a scale",
                               .block_elems = kActElems,
                               .block_bytes = Type::kBytes,
                               .act = Act::q8,
                               .form = RowForm::q4_0,
                               .encode = encode_alike<Type::encode_by>,
                               .encode_by = Type::encode_by,
                               .decode = Type::RowOps::decode,
                               .dot = Type::RowOps::dot,
                               .encode_kv = encode_kv,
                               .kv_rotated = true};
  return codec;
}

}  // namespace kvasir
