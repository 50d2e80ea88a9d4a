// f16: IEEE binary16. Decoding is exact; encoding rounds to nearest even, saturates at +-65504 and counts it.
#include <bit>
#include <cmath>

#include "dtype/codec.h"
#include "dtype/two_bytes.h"

namespace kvasir {
namespace {

constexpr float kMaxF16 = 65504.0f;

float widen(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
  const uint32_t exponent = (h >> 10) & 0x1fu, mantissa = h & 0x3ffu;
  if (exponent == 0) {  // zero or denormal: mantissa * 2^-24
    const float value = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(value) | sign);
  }
  if (exponent == 31) {  // infinity, or a NaN made quiet as the hardware does
    const uint32_t quiet = mantissa != 0 ? 0x400000u : 0u;
    return std::bit_cast<float>(sign | 0x7f800000u | quiet | (mantissa << 13));
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

uint16_t from_f32(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  if (std::isnan(x)) return static_cast<uint16_t>(sign | 0x7e00u);
  const float a = std::fabs(x);
  if (a < 0x1p-14f) {  // denormal: the float's own rounding at 2^-24 steps
    const float steps = (a * 0x1p24f + 0x1p23f) - 0x1p23f;
    return static_cast<uint16_t>(sign | static_cast<uint32_t>(steps));
  }
  const uint32_t abs_bits = bits & 0x7fffffffu;
  const uint32_t rounded = abs_bits + 0xfffu + ((abs_bits >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((rounded - (112u << 23)) >> 13));
}

uint16_t narrow(float x, int64_t* saturated) {
  if (!(std::fabs(x) > kMaxF16)) return from_f32(x);
  ++*saturated;
  return from_f32(std::copysign(kMaxF16, x));
}

using Rows = TwoByteRows<widen, narrow>;

}  // namespace

const Codec& codec_f16() {
  static constexpr Codec codec{.name = "f16",
                               .file_name = "F16",
                               .summary = "16-bit floats, up to 65,504",
                               .block_elems = 1,
                               .block_bytes = 2,
                               .act = Act::f32,
                               .form = RowForm::f16,
                               .encode = Rows::encode,
                               .decode = Rows::decode,
                               .dot = Rows::dot,
                               .encode_kv = Rows::encode};
  return codec;
}

}  // namespace kvasir
