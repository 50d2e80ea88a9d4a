// q4_k: 256 integers of 4 bits in 8 parts with a scale and a minimum each. Source: ggml-org/ggml, block_q4_K.
#include "dtype/k_affine.h"

namespace kvasir {

const Codec& codec_q4_k();

namespace {

using namespace k_affine;

constexpr int kBytes = 144, kMost = 15;

IntegerBlock read(const std::byte* block, int part) {
  IntegerBlock out = scales_of(block, part);
  get_nibbles(block + kHeaderBytes, part, out.w);
  return out;
}

int64_t encode_by(const float* src, const float* importance, std::byte* dst, int64_t n) {
  int64_t saturated = 0;
  for (int64_t i = 0; i < n; i += kElems, dst += kBytes) {
    int w[kElems];
    saturated += encode_header(src + i, ErrorWeights<kElems>(src, importance, i).of, kMost, dst, w);
    put_nibbles(w, dst + kHeaderBytes);
  }
  return saturated;
}

using RowOps = IntegerRowOps<kElems, kBytes, true, read>;

}  // namespace

const Codec& codec_q4_k() {
  static constexpr Codec codec{.name = "q4_k",
                               .file_name = "Q4_K",
                               .summary = "blocks of 256 values of 4 bits, a scale and a minimum of 6 bits for each 32",
                               .block_elems = kElems,
                               .block_bytes = kBytes,
                               .act = Act::q8,
                               .form = RowForm::q4_k,
                               .encode = encode_alike<encode_by>,
                               .encode_by = encode_by,
                               .decode = RowOps::decode,
                               .dot = RowOps::dot};
  return codec;
}

}  // namespace kvasir
