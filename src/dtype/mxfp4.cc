// mxfp4: 32 floats of 4 bits (one sign bit, two exponent bits, one fraction bit) that share a power of two, stored as
// one byte. Twice such a float is an integer. Source: OCP Microscaling Formats (MX) 1.0; ggml-org/ggml, block_mxfp4.
#include <bit>
#include <limits>

#include <cmath>

#include "dtype/table16.h"

namespace kvasir {

const Codec& codec_mxfp4();

namespace {

constexpr int kBytes = 17, kBias = 127, kNaN = 255;
constexpr int8_t kTwice[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
constexpr int kLargestExponent = 2;  // of a 4-bit float: 1.5 * 2^2

// 2^(exponent - 127) / 2, since the table has twice the values.
float half_power(int exponent) {
  if (exponent == kNaN) return std::numeric_limits<float>::quiet_NaN();
  const auto e = static_cast<uint32_t>(exponent);
  return std::bit_cast<float>(e < 2 ? 0x00200000u << e : (e - 1) << 23);
}

IntegerBlock read(const std::byte* block, int) {
  IntegerBlock out{.w = {}, .scale = half_power(std::to_integer<int>(*block))};
  table16::unpack(block + 1, kTwice, out.w);
  return out;
}

// Stores the nearest table entry for each x / scale; of two equally near, the first.
void pack(const float* x, float scale, std::byte* packed) {
  int w[kActElems];
  for (int j = 0; j < kActElems; ++j) {
    const float value = scale != 0 && std::isfinite(x[j] / scale) ? x[j] / scale : 0;
    int nearest = 0;
    for (int i = 1; i < 16; ++i)
      if (std::fabs(static_cast<float>(kTwice[i]) - value) < std::fabs(static_cast<float>(kTwice[nearest]) - value))
        nearest = i;
    w[j] = nearest;
  }
  nibbles::pack<4>(w, packed);
}

// As the specification says: the power of two with which the value furthest from 0 gets the largest exponent.
int64_t encode(const float* src, std::byte* dst, int64_t n) {
  for (int64_t i = 0; i < n; i += kActElems, dst += kBytes) {
    const float most = std::fabs(range_of(src + i, kActElems).extreme());
    int exponent = 0;
    if (most > 0) exponent = std::clamp(std::ilogb(most) - kLargestExponent + kBias, 0, kNaN - 1);
    if (std::isnan(most)) exponent = kNaN;
    *dst = static_cast<std::byte>(exponent);
    pack(src + i, half_power(exponent), dst + 1);
  }
  return 0;
}

using RowOps = IntegerRowOps<kActElems, kBytes, false, read>;

}  // namespace

const Codec& codec_mxfp4() {
  static constexpr Codec codec{.name = "mxfp4",
                               .file_name = "MXFP4",
                               .summary = "blocks of 32 floats of 4 bits that share a power of two",
                               .block_elems = kActElems,
                               .block_bytes = kBytes,
                               .act = Act::q8,
                               .form = RowForm::mxfp4,
                               .encode = encode,
                               .decode = RowOps::decode,
                               .dot = RowOps::dot};
  return codec;
}

}  // namespace kvasir
