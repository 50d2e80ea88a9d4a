// f16: IEEE binary16. Decoding is exact; encoding rounds to nearest even, saturates at +-65504 and counts saturations.
#include <bit>
#include <cstdint>

#include "dtype/codec.h"
#include "dtype/two_byte_row_ops.h"

namespace kvasir {
namespace {

constexpr uint32_t kMaxF16Bits = std::bit_cast<uint32_t>(65504.0f);

float widen(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
  const uint32_t exponent = (h >> 10) & 0x1fu, mantissa = h & 0x3ffu;
  if (exponent == 0) {  // zero or denormal: mantissa * 2^-24
    const float value = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(value) | sign);
  }
  if (exponent == 31) {  // infinity, or a NaN, made quiet as the hardware does
    const uint32_t quiet = mantissa != 0 ? 0x400000u : 0u;
    return std::bit_cast<float>(sign | 0x7f800000u | quiet | (mantissa << 13));
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

uint16_t narrow(float x, uint32_t* saturated) {
  const uint32_t bits = std::bit_cast<uint32_t>(x), magnitude = bits & 0x7fffffffu;
  const Mask over = where(magnitude > kMaxF16Bits), nan = where(magnitude > 0x7f800000u);
  *saturated += over & ~nan & 1u;
  const uint32_t m = choose(over, kMaxF16Bits, magnitude);
  const uint32_t normal = (m + 0xfffu + ((m >> 13) & 1u) - (112u << 23)) >> 13;
  // Denormals have the same step as floats near 0.5, so adding 0.5 rounds them.
  const uint32_t denormal = std::bit_cast<uint32_t>(std::bit_cast<float>(m) + 0.5f) - 0x3f000000u;
  const uint32_t finite = choose(where(m < 0x38800000u), denormal, normal);
  return static_cast<uint16_t>(((bits >> 16) & 0x8000u) | choose(nan, 0x7e00u, finite));
}

using RowOps = TwoByteRowOps<widen, narrow>;

}  // namespace

const Codec& codec_f16() {
  static constexpr Codec codec{.name = "f16",
                               .file_name = "F16",
                               .summary = "16-bit floats, up to 65,504",
                               .block_elems = 1,
                               .block_bytes = 2,
                               .act = Act::f32,
                               .form = RowForm::f16,
                               .encode = RowOps::encode,
                               .decode = RowOps::decode,
                               .dot = RowOps::dot,
                               .encode_kv = RowOps::encode};
  return codec;
}

}  // namespace kvasir
