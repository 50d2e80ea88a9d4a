// q5_1: 32 integers of 5 bits, 0 to 31, one f16 scale and one f16 minimum. Source: ggml-org/ggml, block_q5_1.
#include "dtype/nibbles.h"

namespace kvasir {

const Codec& codec_q5_1();

const Codec& codec_q5_1() {
  using Type = nibbles::Ranged<5>;
  static constexpr Codec codec{.name = "q5_1",
                               .file_name = "Q5_1",
                               .summary = "blocks of 32 values of 5 bits with a scale and a minimum",
                               .block_elems = kActElems,
                               .block_bytes = Type::kBytes,
                               .act = Act::q8,
                               .form = RowForm::q5_1,
                               .encode = encode_alike<Type::encode_by>,
                               .encode_by = Type::encode_by,
                               .decode = Type::RowOps::decode,
                               .dot = Type::RowOps::dot};
  return codec;
}

}  // namespace kvasir
