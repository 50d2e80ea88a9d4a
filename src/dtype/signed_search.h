// Shared by q6_k and q3_k: 256 elements in 16 groups of 16, element = unit * scale * w, where w is a signed integer of
// few bits, scale a signed integer of the group and unit one f16 of the block. Contains the search for scales and unit.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "dtype/centered_search.h"
#include "dtype/error_weights.h"
#include "dtype/integer_row_ops.h"

namespace kvasir::signed_search {

inline constexpr int kElems = 256, kGroup = 16, kGroups = kElems / kGroup;

/// w is in -kMiddle .. kMiddle - 1, and a group's scale in -kMostScale - 1 .. kMostScale.
template <int kMiddle, int kMostScale>
struct Search {
  using Group = CenteredSearch<kGroup, kMiddle>;

  /// Integers and scales of a block; the unit has been written.
  struct Groups {
    int scale[kGroups] = {}, w[kElems] = {};
  };

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
      Group::round_to(unit * scale, x, rounded);
      const double error = Group::squared_error(unit * scale, x, weight, rounded);
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
      scales[g] = Group::best_scale(x + g * kGroup, weight + g * kGroup);
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
