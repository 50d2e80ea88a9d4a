// Shared by mxfp4, iq4_nl and iq4_xs: 32 indices of 4 bits into a table of 16 integers. Byte j of 16 has the indices
// of elements j and j + 16.
#pragma once

#include <cstdint>

#include "dtype/nibbles.h"

namespace kvasir::table16 {

inline void unpack(const std::byte* packed, const int8_t (&table)[16], int32_t* w) {
  nibbles::unpack<4>(packed, w);
  for (int j = 0; j < kActElems; ++j) w[j] = table[w[j]];
}

}  // namespace kvasir::table16
