// Additions and subtractions, and one multiplication at the end.
#include "math/hadamard.h"

#include <cmath>

namespace kvasir {
namespace {

void butterflies(float* x, int n) {
  for (int half = 1; half < n; half *= 2)
    for (int begin = 0; begin < n; begin += 2 * half)
      for (int i = begin; i < begin + half; ++i) {
        const float a = x[i], b = x[i + half];
        x[i] = a + b;
        x[i + half] = a - b;
      }
}

}  // namespace

void rotate_heads(float* row, int heads, int head_dim) {
  const int order = head_dim & -head_dim;
  const float scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(order)));
  for (float* x = row; x < row + int64_t{heads} * head_dim; x += order) {
    butterflies(x, order);
    for (int i = 0; i < order; ++i) x[i] *= scale;
  }
}

}  // namespace kvasir
