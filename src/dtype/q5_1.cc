// q5_1: 32 numbers of 5 bits, 0 to 31, one f16 scale and one f16 minimum. Source: ggml-org/ggml, block_q5_1.
#include "dtype/nibbles.h"

namespace kvasir {

const Codec& codec_q5_1();

const Codec& codec_q5_1() {
  using Type = nibbles::Ranged<5>;
  static constexpr Codec codec{"q5_1",        "Q5_1",       kActElems,          Type::kBytes,   Act::q8,
                               RowForm::q5_1, Type::encode, Type::Rows::decode, Type::Rows::dot};
  return codec;
}

}  // namespace kvasir
