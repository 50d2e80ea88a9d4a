// Two mapped blocks of rows, K and V, `[layer][pos][row]` with one capacity: the storage of every contiguous layout. It
// knows strides and copying; its owner decides on growth and knows lengths and tokens.
#pragma once

#include <cstddef>
#include <cstdint>

#include <kvasir/result.h>

#include "base/buffer.h"

namespace kvasir {

struct Slab {
  int layers = 0, cap = 0;
  size_t k_row = 0, v_row = 0;  // bytes of one position in one layer
  Buffer k, v;

  /// Errors: no memory.
  static Result<Slab> allocate(int layers, int cap, size_t k_row, size_t v_row) {
    Slab slab{layers, cap, k_row, v_row, {}, {}};
    const size_t rows = static_cast<size_t>(layers) * static_cast<size_t>(cap);
    KVASIR_TRY(slab.k, Buffer::allocate(product(rows, k_row), Owner::kv));
    KVASIR_TRY(slab.v, Buffer::allocate(product(rows, v_row), Owner::kv));
    return slab;
  }
  /// a * b, or SIZE_MAX on overflow, which no system can allocate.
  static size_t product(size_t a, size_t b) {
    size_t bytes = 0;
    return __builtin_mul_overflow(a, b, &bytes) ? SIZE_MAX : bytes;
  }

  size_t index(int layer, int pos) const {
    return static_cast<size_t>(layer) * static_cast<size_t>(cap) + static_cast<size_t>(pos);
  }
  std::byte* k_at(int layer, int pos) const { return k.data() + index(layer, pos) * k_row; }
  std::byte* v_at(int layer, int pos) const { return v.data() + index(layer, pos) * v_row; }
  size_t bytes() const { return k.bytes() + v.bytes(); }

  /// Copies the first `len` positions of every layer to this slab's stride; returns `len`.
  size_t copy_from(const Slab& old, int len);
};

}  // namespace kvasir
