// q4_0: 32 numbers of 4 bits, -8 to 7, and one f16 scale. Source: ggml-org/ggml, block_q4_0.
#include "dtype/nibbles.h"

namespace kvasir {

const Codec& codec_q4_0();

const Codec& codec_q4_0() {
  using Type = nibbles::Centered<4>;
  static constexpr Codec codec{
      "q4_0",        "Q4_0",       kActElems,          Type::kBytes,    Act::q8,
      RowForm::q4_0, Type::encode, Type::Rows::decode, Type::Rows::dot, KvUse::plain_and_rotated};
  return codec;
}

}  // namespace kvasir
