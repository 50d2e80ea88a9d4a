// f32: four bytes per channel, stored unchanged.
#include <cstring>

#include "dtype/codec.h"
#include "dtype/lanes.h"

namespace kvasir {
namespace {

int64_t encode(const float* src, std::byte* dst, int64_t n) {
  std::memcpy(dst, src, static_cast<size_t>(n) * sizeof(float));
  return 0;
}

void decode(const std::byte* src, float* dst, int64_t n) {
  std::memcpy(dst, src, static_cast<size_t>(n) * sizeof(float));
}

float dot(const std::byte* row, const std::byte* act, int64_t n) {
  return dot_lanes(
      n, [&](int64_t i) { return float_at(row, i); }, [&](int64_t i) { return float_at(act, i); });
}

}  // namespace

const Codec& codec_f32() {
  static constexpr Codec codec{.name = "f32",
                               .file_name = "F32",
                               .summary = "32-bit floats",
                               .block_elems = 1,
                               .block_bytes = 4,
                               .act = Act::f32,
                               .form = RowForm::f32,
                               .encode = encode,
                               .decode = decode,
                               .dot = dot,
                               .encode_kv = encode};
  return codec;
}

}  // namespace kvasir
