// q4_1: 32 integers of 4 bits, 0 to 15, one f16 scale and one f16 minimum. Source: ggml-org/ggml, block_q4_1.
#include "dtype/nibbles.h"

namespace kvasir {

const Codec& codec_q4_1();

const Codec& codec_q4_1() {
  using Type = nibbles::Ranged<4>;
  static constexpr Codec codec{.name = "q4_1",
                               .file_name = "Q4_1",
                               .summary = "blocks of 32 values of 4 bits with a scale and a minimum",
                               .block_elems = kActElems,
                               .block_bytes = Type::kBytes,
                               .act = Act::q8,
                               .form = RowForm::q4_1,
                               .encode = encode_alike<Type::encode_by>,
                               .encode_by = Type::encode_by,
                               .decode = Type::RowOps::decode,
                               .dot = Type::RowOps::dot};
  return codec;
}

}  // namespace kvasir
