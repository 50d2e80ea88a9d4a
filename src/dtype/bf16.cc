// bf16: the upper half of an f32. Decoding is exact; encoding rounds to nearest even in integers, denormals kept.
#include <bit>
#include <cmath>
#include <cstring>

#include "dtype/codec.h"
#include "dtype/lanes.h"

namespace kvasir {
namespace {

float to_f32(uint16_t h) { return std::bit_cast<float>(static_cast<uint32_t>(h) << 16); }

uint16_t from_f32(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  if (std::isnan(x)) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

uint16_t load_bits(const std::byte* row, int64_t i) {
  uint16_t h;
  std::memcpy(&h, row + static_cast<size_t>(i) * sizeof h, sizeof h);
  return h;
}

int64_t encode(const float* src, std::byte* dst, int64_t n) {
  int64_t saturated = 0;
  for (int64_t i = 0; i < n; ++i) {
    const uint16_t h = from_f32(src[i]);
    if ((h & 0x7fffu) == 0x7f80u && std::isfinite(src[i])) ++saturated;
    std::memcpy(dst + static_cast<size_t>(i) * sizeof h, &h, sizeof h);
  }
  return saturated;
}

void decode(const std::byte* src, float* dst, int64_t n) {
  for (int64_t i = 0; i < n; ++i) dst[i] = to_f32(load_bits(src, i));
}

float dot(const std::byte* row, const float* act, int64_t n) {
  return dot_lanes(
      n, [&](int64_t i) { return to_f32(load_bits(row, i)); }, [&](int64_t i) { return act[i]; });
}

}  // namespace

const Codec& codec_bf16() {
  static constexpr Codec codec{"bf16", "BF16", 1, 2, encode, decode, dot};
  return codec;
}

}  // namespace kvasir
