// Shared by the types whose magnitudes come from a codebook (iq2_xxs, iq2_xs, iq2_s, iq3_xxs, iq3_s): blocks of 256
// elements, element = unit * scale * magnitude, with a sign bit each. The types are only read: to search for codebook
// entries takes an importance and minutes for each layer.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "dtype/integer_row_ops.h"

namespace kvasir::codebook {

inline constexpr int kElems = 256;

template <class T>
T number_at(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}
inline int byte_at(const std::byte* at) { return std::to_integer<int>(*at); }

/// Seven sign bits, and the eighth that makes their number even.
constexpr int even_signs(unsigned seven) { return static_cast<int>(seven | (std::popcount(seven) & 1u) << 7); }

/// Writes scale * magnitude with its sign for each of the elements of a codebook entry: 8 with two bits each if there
/// are three levels, 4 with three bits each if there are eight.
template <size_t kLevelCount>
void unpack(int entry, const int (&levels)[kLevelCount], int signs, int scale, int32_t* w) {
  constexpr int kBits = kLevelCount == 3 ? 2 : 3, kCount = kLevelCount == 3 ? 8 : 4;
  for (int j = 0; j < kCount; ++j) {
    const int magnitude = scale * levels[static_cast<size_t>(entry >> kBits * j & ((1 << kBits) - 1))];
    w[j] = (signs >> j & 1) != 0 ? -magnitude : magnitude;
  }
}

/// A type that is only read.
template <class RowOps>
constexpr Codec codec(const char* name, const char* file_name, const char* summary, int block_bytes) {
  return {.name = name,
          .file_name = file_name,
          .summary = summary,
          .block_elems = kElems,
          .block_bytes = block_bytes,
          .act = Act::q8,
          .form = RowForm::other,
          .encode = nullptr,
          .decode = RowOps::decode,
          .dot = RowOps::dot};
}

}  // namespace kvasir::codebook
