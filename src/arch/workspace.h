// A stack of memory for activations: handed out in order, released back to a mark, kept between passes.
// activation_memory.h predicts how much a pass needs.
#pragma once

#include <cstddef>
#include <vector>

#include <kvasir/result.h>

#include "base/buffer.h"
#include "math/compute.h"

namespace kvasir {

class Workspace {
 public:
  /// Empties the workspace and makes room for `floats` floats. Errors: no memory.
  Result<void> reserve(size_t floats);

  /// Floats that take(n, cols) uses.
  static size_t floats_for(int n, int64_t cols) {
    return (static_cast<size_t>(n) * static_cast<size_t>(cols) + 15) / 16 * 16;
  }

  /// Returns n rows of `cols` floats, contents unspecified. Rows past what is reserved get memory of their own, valid
  /// until the next reserve(); most() shows that this happened.
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

  /// Floats of the last reserve(), and the largest number in use at once since then.
  size_t reserved() const { return reserved_; }
  size_t most() const { return most_; }
  /// From now on, take() appends its `cols` to *columns; null ends that.
  void list_columns(std::vector<int64_t>* columns) { columns_ = columns; }

 private:
  float* past_the_reserve(size_t floats);

  Buffer buffer_;
  std::vector<Buffer> overruns_;
  size_t reserved_ = 0, used_ = 0, most_ = 0;
  std::vector<int64_t>* columns_ = nullptr;
};

}  // namespace kvasir
