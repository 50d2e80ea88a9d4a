// Growth, and rows past what is reserved.
#include "arch/workspace.h"

#include <cstdlib>

namespace kvasir {

Result<void> Workspace::reserve(size_t floats) {
  reserved_ = used_ = most_ = 0;
  overruns_.clear();
  if (floats * sizeof(float) > buffer_.bytes()) {
    buffer_ = {};  // freed first, so that both never exist at once
    KVASIR_TRY(buffer_, Buffer::allocate(floats * sizeof(float), Owner::activations));
  }
  reserved_ = floats;
  return {};
}

float* Workspace::past_the_reserve(size_t floats) {
  auto memory = Buffer::allocate(floats * sizeof(float), Owner::activations);
  if (!memory) std::abort();  // a defect, and no memory left to reach the error that reports it
  return reinterpret_cast<float*>(overruns_.emplace_back(std::move(*memory)).data());
}

}  // namespace kvasir
