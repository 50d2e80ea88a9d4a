// Memory for activations: handed out in order, taken back to a mark, kept between passes. How much a pass needs is
// footprint.h's.
#pragma once

#include <cstddef>
#include <vector>

#include <kvasir/result.h>

#include "base/buffer.h"
#include "math/compute.h"

namespace kvasir {

class Workspace {
 public:
  /// Makes the next passes fit: `floats` at once, all of them free. Errors: no memory.
  Result<void> reserve(size_t floats);

  /// Floats that `take` uses for n rows of `cols`.
  static size_t floats_for(int n, int64_t cols) {
    return (static_cast<size_t>(n) * static_cast<size_t>(cols) + 15) / 16 * 16;
  }

  /// n rows of `cols`, not cleared. Past what is reserved they are memory of their own, good until the next reserve();
  /// most() tells.
  Rows take(int n, int64_t cols) {
    if (columns_ != nullptr) columns_->push_back(cols);
    const size_t begin = used_, floats = floats_for(n, cols);
    used_ += floats;
    if (used_ > most_) most_ = used_;
    float* const data =
        used_ <= reserved_ ? reinterpret_cast<float*>(buffer_.data()) + begin : past_the_reserve(floats);
    return {data, n, cols, cols};
  }
  size_t mark() const { return used_; }
  void back_to(size_t mark) { used_ = mark; }

  /// Floats of the last reserve(), and the most in use at once since.
  size_t reserved() const { return reserved_; }
  size_t most() const { return most_; }
  /// The `cols` of each take() from now on are appended to *columns; null ends that.
  void list_columns(std::vector<int64_t>* columns) { columns_ = columns; }

 private:
  float* past_the_reserve(size_t floats);

  Buffer buffer_;
  std::vector<Buffer> overruns_;
  size_t reserved_ = 0, used_ = 0, most_ = 0;
  std::vector<int64_t>* columns_ = nullptr;
};

}  // namespace kvasir
