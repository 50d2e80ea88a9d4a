// Shared by mxfp4 and iq4_nl: 32 indices of 4 bits into a table of 16 integers, and one scale. Byte j of 16 has the
// indices of elements j and j + 16.
#pragma once

#include <cmath>
#include <cstdint>

#include "dtype/nibbles.h"

namespace kvasir::table16 {

inline void unpack(const std::byte* packed, const int8_t (&table)[16], int32_t* w) {
  nibbles::unpack<4>(packed, w);
  for (int j = 0; j < kActElems; ++j) w[j] = table[w[j]];
}

/// Stores the nearest table entry for each x / scale; of two equally near, the first.
inline void pack(const float* x, float scale, const int8_t (&table)[16], std::byte* packed) {
  int w[kActElems];
  for (int j = 0; j < kActElems; ++j) {
    const float value = scale != 0 && std::isfinite(x[j] / scale) ? x[j] / scale : 0;
    int nearest = 0;
    for (int i = 1; i < 16; ++i)
      if (std::fabs(static_cast<float>(table[i]) - value) < std::fabs(static_cast<float>(table[nearest]) - value))
        nearest = i;
    w[j] = nearest;
  }
  nibbles::pack<4>(w, packed);
}

}  // namespace kvasir::table16
