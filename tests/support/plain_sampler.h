// Random numbers and choices straight from their definitions, for the tests of samplers. Test code only.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include <kvasir/sampling.h>

namespace kvasir::plain {

/// Philox4x32-10 from the paper's definition (Salmon et al., SC'11, section 3.3).
inline std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (uint32_t round = 0; round < 10; ++round) {
    const uint32_t k0 = key[0] + round * 0x9E3779B9u, k1 = key[1] + round * 0xBB67AE85u;
    const uint64_t p0 = 0xD2511F53ull * counter[0], p1 = 0xCD9E8D57ull * counter[2];
    counter = {static_cast<uint32_t>(p1 >> 32) ^ counter[1] ^ k0, static_cast<uint32_t>(p1 & 0xffffffffu),
               static_cast<uint32_t>(p0 >> 32) ^ counter[3] ^ k1, static_cast<uint32_t>(p0 & 0xffffffffu)};
  }
  return counter;
}

/// `purpose`: 0 for the draw, 1 for XTC.
inline double uniform(uint64_t seed, int choice, int position, uint32_t purpose = 0) {
  const auto x = philox({static_cast<uint32_t>(position), static_cast<uint32_t>(choice), purpose, 0},
                        {static_cast<uint32_t>(seed & 0xffffffffu), static_cast<uint32_t>(seed >> 32)});
  return std::ldexp(static_cast<double>((static_cast<uint64_t>(x[0]) << 32 | x[1]) >> 11), -53);
}

/// Turns off every sampler except temperature 1.
inline SamplingParams off() { return {.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0}; }

}  // namespace kvasir::plain
