// Shared by q6_k and q3_k: 256 elements in 16 groups of 16, element = unit * scale * w, where w is a signed integer of
// few bits, scale a signed integer of the group and unit one f16 of the block. Contains the search for them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "dtype/error_weights.h"
#include "dtype/integer_row_ops.h"

namespace kvasir::signed_search {

inline constexpr int kElems = 256, kGroup = 16, kGroups = kElems / kGroup;

/// w is in -kMiddle .. kMiddle - 1, and a group's scale in -kMostScale - 1 .. kMostScale.
template <int kMiddle, int kMostScale>
struct Search {
  /// Integers and scales of a block; the unit has been written.
  struct Groups {
    int scale[kGroups] = {}, w[kElems] = {};
  };

  static void round_to(double scale, const float* x, int* w) {
    const double inverse = scale != 0 ? 1 / scale : 0;
    for (int j = 0; j < kGroup; ++j)  // shifted to positive values, so that truncation after adding 0.5 rounds
      w[j] = static_cast<int>(std::clamp(x[j] * inverse + kMiddle, 0.0, 2.0 * kMiddle - 1) + 0.5) - kMiddle;
  }

  static double squared_error(double scale, const float* x, const float* weight, const int* w) {
    double error = 0;
    for (int j = 0; j < kGroup; ++j) error += weight[j] * (scale * w[j] - x[j]) * (scale * w[j] - x[j]);
    return error;
  }

  // Tries steps from coarser than the range requires to slightly finer, each improved by least squares. On normally
  // distributed numbers the error is a tenth below that of the range's own step.
  static double best_scale(const float* x, const float* weight) {
    const double extreme = range_of(x, kGroup).extreme();
    double best = 0, least = std::numeric_limits<double>::infinity();
    for (double steps = kMiddle - 3; steps <= kMiddle + 1 && extreme != 0; steps += 0.5) {
      int w[kGroup];
      round_to(extreme / -steps, x, w);
      double along = 0, length = 0;
      for (int j = 0; j < kGroup; ++j) {
        const double of_w = double{weight[j]} * w[j];
        along += of_w * x[j], length += of_w * w[j];
      }
      const double scale = length > 0 ? along / length : extreme / -steps;
      round_to(scale, x, w);
      const double error = squared_error(scale, x, weight, w);
      if (error < least) least = error, best = scale;
    }
    return best;
  }

  // Tries the integer scales at and next to the wanted one and returns the one with the least error; `w` receives its
  // integers.
  static int best_multiple(const float* x, const float* weight, double wanted, double unit, int* w) {
    constexpr double kLow = -kMostScale - 1, kHigh = kMostScale;
    const int center = unit != 0 ? static_cast<int>(std::lround(std::clamp(wanted / unit, kLow, kHigh))) : 0;
    int best = 0;
    if (wanted == 0) return 0;  // all zeros, such as the padding of heads in a KV row
    double least = std::numeric_limits<double>::infinity();
    for (int scale = std::max(center - 1, -kMostScale - 1); scale <= std::min(center + 1, kMostScale); ++scale) {
      int rounded[kGroup];
      round_to(unit * scale, x, rounded);
      const double error = squared_error(unit * scale, x, weight, rounded);
      if (error >= least) continue;
      least = error, best = scale;
      std::copy(rounded, rounded + kGroup, w);
    }
    return best;
  }

  /// Writes the unit of a block to `unit` and its integers and scales to `out`, or a unit that is NaN if an element is
  /// not finite. Returns 1 if the unit saturated, else 0.
  static int64_t fit(const float* x, const float* weight, std::byte* unit, Groups* out) {
    if (std::isnan(range_of(x, kElems).low)) return put_half(NAN, unit);
    double scales[kGroups], largest = 0;
    for (int g = 0; g < kGroups; ++g) {
      scales[g] = best_scale(x + g * kGroup, weight + g * kGroup);
      if (std::fabs(scales[g]) > std::fabs(largest)) largest = scales[g];
    }
    // The largest scale becomes the lowest integer, of which there is one more than above 0.
    const int64_t saturated = put_half(static_cast<float>(largest / (-kMostScale - 1)), unit);
    for (int g = 0; g < kGroups; ++g)
      out->scale[g] = best_multiple(x + g * kGroup, weight + g * kGroup, scales[g], half_at(unit), out->w + g * kGroup);
    return saturated;
  }
};

}  // namespace kvasir::signed_search
