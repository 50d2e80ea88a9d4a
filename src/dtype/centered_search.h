// Shared by the types whose elements are scale * w with w a signed integer of few bits (q3_k, q4_0, q5_0, q6_k): the
// search for the scale of a few elements. Packing, and scales of scales, are not here.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "dtype/integer_row_ops.h"

namespace kvasir {

/// kCount elements; w is in -kMiddle .. kMiddle - 1.
template <int kCount, int kMiddle>
struct CenteredSearch {
  /// Writes the nearest w for every x.
  static void round_to(double scale, const float* x, int* w) {
    const double inverse = scale != 0 ? 1 / scale : 0;
    for (int j = 0; j < kCount; ++j)  // shifted to positive values, so that truncation after adding 0.5 rounds
      w[j] = static_cast<int>(std::clamp(x[j] * inverse + kMiddle, 0.0, 2.0 * kMiddle - 1) + 0.5) - kMiddle;
  }

  static double squared_error(double scale, const float* x, const float* weight, const int* w) {
    double error = 0;
    for (int j = 0; j < kCount; ++j) error += weight[j] * (scale * w[j] - x[j]) * (scale * w[j] - x[j]);
    return error;
  }

  /// The best scale for given w, by least squares; `otherwise` if all count nothing.
  static double least_squares(const float* x, const float* weight, const int* w, double otherwise) {
    double along = 0, length = 0;
    for (int j = 0; j < kCount; ++j) {
      const double of_w = double{weight[j]} * w[j];
      along += of_w * x[j], length += of_w * w[j];
    }
    return length > 0 ? along / length : otherwise;
  }

  /// Tries steps from coarser than the range requires to slightly finer, each improved by least squares. On normally
  /// distributed numbers the error is a tenth below that of the range's own step. Requires: finite elements.
  static double best_scale(const float* x, const float* weight) {
    const double extreme = range_of(x, kCount).extreme();
    double best = 0, least = std::numeric_limits<double>::infinity();
    for (double steps = kMiddle - 3; steps <= kMiddle + 1 && extreme != 0; steps += 0.5) {
      int w[kCount];
      round_to(extreme / -steps, x, w);
      const double scale = least_squares(x, weight, w, extreme / -steps);
      round_to(scale, x, w);
      const double error = squared_error(scale, x, weight, w);
      if (error < least) least = error, best = scale;
    }
    return best;
  }
};

}  // namespace kvasir
