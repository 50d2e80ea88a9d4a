// How much the error of each element counts when a type with a search encodes a block.
#pragma once

#include <cmath>
#include <cstdint>

namespace kvasir {

/// Weights of kCount elements: 1 without an importance, else importance * sqrt(mean of x^2 + x^2), as llama.cpp weighs
/// them (ggml-org/ggml, ggml-quants.c). `importance` is the mean square of the activation that an element is multiplied
/// with, or null.
template <int kCount>
struct ErrorWeights {
  float of[kCount];

  /// For elements [from, from + kCount) of a row x.
  ErrorWeights(const float* x, const float* importance, int64_t from) {
    x += from;
    double squares = 0;
    for (int i = 0; i < kCount; ++i) squares += double{x[i]} * x[i];
    for (int i = 0; i < kCount; ++i)
      of[i] = importance == nullptr
                  ? 1.0f
                  : static_cast<float>(importance[from + i] * std::sqrt(squares / kCount + double{x[i]} * x[i]));
  }
};

}  // namespace kvasir
