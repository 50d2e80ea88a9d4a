// q5_k: 256 integers of 5 bits in 8 parts with a scale and a minimum each. Source: ggml-org/ggml, block_q5_K.
#include "dtype/k_affine.h"

namespace kvasir {

const Codec& codec_q5_k();

namespace {

using namespace k_affine;

constexpr int kBytes = 176, kMost = 31;

// In the 32 bytes after the header, bit p of byte j is the fifth bit of element j of part p.
IntegerBlock read(const std::byte* block, int part) {
  IntegerBlock out = scales_of(block, part);
  get_nibbles(block + kHeaderBytes + kPart, part, out.w);
  for (int j = 0; j < kPart; ++j) out.w[j] |= (std::to_integer<int>(block[kHeaderBytes + j]) >> part & 1) << 4;
  return out;
}

int64_t encode_by(const float* src, const float* importance, std::byte* dst, int64_t n) {
  int64_t saturated = 0;
  for (int64_t i = 0; i < n; i += kElems, dst += kBytes) {
    int w[kElems];
    saturated += encode_header(src + i, ErrorWeights<kElems>(src, importance, i).of, kMost, dst, w);
    std::fill_n(dst + kHeaderBytes, kPart, std::byte{});
    for (int e = 0; e < kElems; ++e) dst[kHeaderBytes + e % kPart] |= static_cast<std::byte>(w[e] >> 4 << e / kPart);
    put_nibbles(w, dst + kHeaderBytes + kPart);
  }
  return saturated;
}

using RowOps = IntegerRowOps<kElems, kBytes, true, read>;

}  // namespace

const Codec& codec_q5_k() {
  static constexpr Codec codec{.name = "q5_k",
                               .file_name = "Q5_K",
                               .summary = "blocks of 256 values of 5 bits, a scale and a minimum of 6 bits for each 32",
                               .block_elems = kElems,
                               .block_bytes = kBytes,
                               .act = Act::q8,
                               .form = RowForm::q5_k,
                               .encode = encode_alike<encode_by>,
                               .encode_by = encode_by,
                               .decode = RowOps::decode,
                               .dot = RowOps::dot};
  return codec;
}

}  // namespace kvasir
