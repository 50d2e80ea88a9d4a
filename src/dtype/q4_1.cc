// q4_1: 32 numbers of 4 bits, 0 to 15, one f16 scale and one f16 minimum. Source: ggml-org/ggml, block_q4_1.
#include "dtype/nibbles.h"

namespace kvasir {

const Codec& codec_q4_1();

const Codec& codec_q4_1() {
  using Type = nibbles::Ranged<4>;
  static constexpr Codec codec{"q4_1",        "Q4_1",       kActElems,          Type::kBytes,   Act::q8,
                               RowForm::q4_1, Type::encode, Type::Rows::decode, Type::Rows::dot};
  return codec;
}

}  // namespace kvasir
