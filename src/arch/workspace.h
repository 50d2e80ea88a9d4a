// Memory for activations: handed out in order, taken back to a mark, kept between passes.
#pragma once

#include <cassert>
#include <cstddef>
#include <vector>

#include <kvasir/result.h>

#include "base/buffer.h"
#include "math/compute.h"

namespace kvasir {

class Workspace {
 public:
  /// Makes the next passes fit: `floats` between two resets. Errors: no memory.
  Result<void> reserve(size_t floats) {
    if (floats * sizeof(float) > buffer_.bytes()) {
      buffer_ = {};  // first, so that the two are never there together
      KVASIR_TRY(buffer_, Buffer::allocate(floats * sizeof(float), Owner::activations));
    }
    used_ = 0;
    return {};
  }
  /// Floats that `take` uses for n rows of `cols`.
  static size_t floats_for(int n, int64_t cols) {
    return (static_cast<size_t>(n) * static_cast<size_t>(cols) + 15) / 16 * 16;
  }

  /// n rows of `cols`, not cleared. Requires: reserved.
  Rows take(int n, int64_t cols) {
    Rows rows{reinterpret_cast<float*>(buffer_.data()) + used_, n, cols, cols};
    used_ += floats_for(n, cols);
    assert(used_ * sizeof(float) <= buffer_.bytes());
    return rows;
  }
  size_t mark() const { return used_; }
  void back_to(size_t mark) { used_ = mark; }

 private:
  Buffer buffer_;
  size_t used_ = 0;
};

}  // namespace kvasir
