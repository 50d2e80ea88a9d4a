// Counter-based random numbers: the same key and counter give the same bits on every machine, in any order.
#pragma once

#include <array>
#include <cstdint>

namespace kvasir {

/// Philox4x32-10 (Salmon et al., SC'11): ten rounds of two multiplications over a counter.
constexpr std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> x, uint64_t key) {
  uint32_t key0 = static_cast<uint32_t>(key), key1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * x[0], b = uint64_t{0xCD9E8D57} * x[2];
    x = {static_cast<uint32_t>(b >> 32) ^ x[1] ^ key0, static_cast<uint32_t>(b),
         static_cast<uint32_t>(a >> 32) ^ x[3] ^ key1, static_cast<uint32_t>(a)};
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return x;
}

}  // namespace kvasir
