// Tables: the values of the four bits of mxfp4 and iq4_nl, and the scales of mxfp4. The including file defines
// KVASIR_SIMD_NS.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "math/simd/vec16_common.h"

namespace KVASIR_SIMD_NS {
namespace {

// Values by nibble: mxfp4's doubled and with 16 added, iq4_nl's as signed bytes.
alignas(16) constexpr uint8_t kMxfp4Numbers[16] = {16, 17, 18, 19, 20, 22, 24, 28, 16, 15, 14, 13, 12, 10, 8, 4};
alignas(16) constexpr int8_t kIq4NlNumbers[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                  1,    13,   25,  38,  53,  69,  89,  113};

/// Half of each power of two that mxfp4 has.
struct HalfPowers {
  float of[256];
};
constexpr HalfPowers kHalfPowers = [] {
  HalfPowers out{};
  for (uint32_t e = 0; e < 255; ++e) out.of[e] = std::bit_cast<float>(e < 2 ? 0x00200000u << e : (e - 1) << 23);
  out.of[255] = __builtin_nanf("");
  return out;
}();
KVASIR_SIMD_FN float half_power(const std::byte* exponent) { return kHalfPowers.of[static_cast<uint8_t>(*exponent)]; }

}  // namespace
}  // namespace KVASIR_SIMD_NS
