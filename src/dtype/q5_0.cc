// q5_0: 32 integers of 5 bits, -16 to 15, and one f16 scale. Source: ggml-org/ggml, block_q5_0.
#include "dtype/nibbles.h"

namespace kvasir {

const Codec& codec_q5_0();

const Codec& codec_q5_0() {
  using Type = nibbles::Centered<5>;
  static constexpr Codec codec{.name = "q5_0",
                               .file_name = "Q5_0",
                               .summary = "blocks of 32 values of 5 bits with a scale",
                               .block_elems = kActElems,
                               .block_bytes = Type::kBytes,
                               .act = Act::q8,
                               .form = RowForm::q5_0,
                               .encode = encode_alike<Type::encode_by>,
                               .encode_by = Type::encode_by,
                               .decode = Type::RowOps::decode,
                               .dot = Type::RowOps::dot};
  return codec;
}

}  // namespace kvasir
