// q5_0: 32 numbers of 5 bits, -16 to 15, and one f16 scale. Source: ggml-org/ggml, block_q5_0.
#include "dtype/nibbles.h"

namespace kvasir {

const Codec& codec_q5_0();

const Codec& codec_q5_0() {
  using Type = nibbles::Centered<5>;
  static constexpr Codec codec{"q5_0",        "Q5_0",       kActElems,          Type::kBytes,   Act::q8,
                               RowForm::q5_0, Type::encode, Type::Rows::decode, Type::Rows::dot};
  return codec;
}

}  // namespace kvasir
