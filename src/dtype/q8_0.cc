// q8_0: 32 signed bytes and one f16 scale. Source: ggml-org/ggml, block_q8_0.
#include "dtype/closest_scale.h"
#include "dtype/integer_row_ops.h"

namespace kvasir {

const Codec& codec_q8_0();

namespace {

constexpr int kElems = 32, kBytes = 34;

IntegerBlock read(const std::byte* block, int) {
  IntegerBlock out{.w = {}, .scale = half_at(block)};
  for (int j = 0; j < kElems; ++j) out.w[j] = static_cast<int8_t>(block[2 + j]);
  return out;
}

int64_t encode(const float* src, std::byte* dst, int64_t n) {
  int64_t saturated = 0;
  for (int64_t i = 0; i < n; i += kElems, dst += kBytes) {
    saturated += put_half(std::fabs(range_of(src + i, kElems).extreme()) / 127.0f, dst);
    const float d = half_at(dst);
    for (int j = 0; j < kElems; ++j) dst[2 + j] = static_cast<std::byte>(steps(src[i + j], d, -127, 127));
  }
  return saturated;
}

int64_t encode_kv(const float* src, std::byte* dst, int64_t n) {
  constexpr ScaleSearch kSearch{128, 128, 0.5f};
  int64_t saturated = 0;
  for (int64_t i = 0; i < n; i += kElems, dst += kBytes) {
    int w[kElems];
    saturated += encode_closest(src + i, kSearch, dst, w);
    for (int j = 0; j < kElems; ++j) dst[2 + j] = static_cast<std::byte>(w[j]);
  }
  return saturated;
}

using RowOps = IntegerRowOps<kElems, kBytes, false, read>;

}  // namespace

const Codec& codec_q8_0() {
  static constexpr Codec codec{.name = "q8_0",
                               .file_name = "Q8_0",
                               .summary = "blocks of 32 signed bytes with a scale",
                               .block_elems = kElems,
                               .block_bytes = kBytes,
                               .act = Act::q8,
                               .form = RowForm::q8_0,
                               .encode = encode,
                               .decode = RowOps::decode,
                               .dot = RowOps::dot,
                               .encode_kv = encode_kv};
  return codec;
}

}  // namespace kvasir
