// How much the error of each element counts when a type with a search encodes a block.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
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
    std::fill_n(of, kCount, 1.0f);
    if (importance == nullptr) return;
    x += from;
    double squares = 0;
    for (int i = 0; i < kCount; ++i) squares += double{x[i]} * x[i];
    for (int i = 0; i < kCount; ++i)
      of[i] = static_cast<float>(importance[from + i] * std::sqrt(squares / kCount + double{x[i]} * x[i]));
  }
};

/// Codec::encode of a type whose Codec::encode_by is kEncodeBy.
template <int64_t (*kEncodeBy)(const float*, const float*, std::byte*, int64_t)>
int64_t encode_alike(const float* src, std::byte* dst, int64_t n) {
  return kEncodeBy(src, nullptr, dst, n);
}

}  // namespace kvasir
