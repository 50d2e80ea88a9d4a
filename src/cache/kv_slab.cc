// Copying rows from one stride to another.
#include "cache/kv_slab.h"

#include <cstring>

namespace kvasir {

size_t Slab::copy_from(const Slab& old, int len) {
  if (len == 0) return 0;
  for (int layer = 0; layer < layers; ++layer) {
    std::memcpy(k_at(layer, 0), old.k_at(layer, 0), static_cast<size_t>(len) * k_row);
    std::memcpy(v_at(layer, 0), old.v_at(layer, 0), static_cast<size_t>(len) * v_row);
  }
  return static_cast<size_t>(len);
}

}  // namespace kvasir
