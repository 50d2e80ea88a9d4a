// bf16: the upper half of an f32. Decoding is exact; encoding rounds to nearest even with integer arithmetic and keeps
// denormals.
#include <bit>
#include <cstdint>

#include "dtype/codec.h"
#include "dtype/two_byte_row_ops.h"

namespace kvasir {
namespace {

float widen(uint16_t h) { return std::bit_cast<float>(static_cast<uint32_t>(h) << 16); }

uint16_t narrow(float x, uint32_t* saturated) {
  const uint32_t bits = std::bit_cast<uint32_t>(x), magnitude = bits & 0x7fffffffu;
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  *saturated += where((rounded & 0x7fffu) == 0x7f80u) & where(magnitude < 0x7f800000u) & 1u;
  return static_cast<uint16_t>(choose(where(magnitude > 0x7f800000u), (bits >> 16) | 0x40u, rounded));
}

using RowOps = TwoByteRowOps<widen, narrow>;

}  // namespace

const Codec& codec_bf16() {
  static constexpr Codec codec{.name = "bf16",
                               .file_name = "BF16",
                               .summary = "the upper 16 bits of 32-bit floats",
                               .block_elems = 1,
                               .block_bytes = 2,
                               .act = Act::f32,
                               .form = RowForm::bf16,
                               .encode = RowOps::encode,
                               .decode = RowOps::decode,
                               .dot = RowOps::dot,
                               .encode_kv = RowOps::encode};
  return codec;
}

}  // namespace kvasir
