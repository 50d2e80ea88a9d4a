// Shared by iq4_nl and iq4_xs: the table of 16 integers, denser near 0, and the search for the scale of 32 elements.
// Source: ggml-org/ggml, kvalues_iq4nl.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "dtype/error_weights.h"
#include "dtype/table16.h"

namespace kvasir::iq4 {

inline constexpr int8_t kTable[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

/// The index of the entry nearest to x; of two equally near, the lower one. The middles between entries are multiples
/// of a half, so an interval of a half has one answer.
inline int nearest(float x) {
  constexpr int kLow = 2 * kTable[0], kHigh = 2 * kTable[15];
  static constexpr auto kNearest = [] {
    std::array<uint8_t, kHigh - kLow + 1> out{};
    int i = 0;
    for (int half = kLow; half <= kHigh; ++half) {
      while (i < 15 && half > kTable[i] + kTable[i + 1]) ++i;
      out[static_cast<size_t>(half - kLow)] = static_cast<uint8_t>(i);
    }
    return out;
  }();
  const auto half = static_cast<int>(std::ceil(std::clamp(2 * x, float{kLow}, float{kHigh})));
  return kNearest[static_cast<size_t>(half - kLow)];
}

/// Writes the indices of the entries nearest to x / scale; a quotient that is not finite counts as 0. Returns the sum
/// of weighted squared errors.
inline double round_to(float scale, const float* x, const float* weight, int* index) {
  double error = 0;
  for (int j = 0; j < kActElems; ++j) {
    const float quotient = scale != 0 ? x[j] / scale : 0;
    index[j] = nearest(std::isfinite(quotient) ? quotient : 0);
    const double e = double{scale} * kTable[index[j]] - x[j];
    error += weight[j] * e * e;
  }
  return error;
}

/// The scale of 32 elements: tries to put the value furthest from 0 at and around either end of the table, each
/// improved by least squares. NaN if an element is not finite.
inline double best_scale(const float* x, const float* weight) {
  const double extreme = range_of(x, kActElems).extreme();
  if (extreme == 0 || std::isnan(extreme)) return extreme;
  double best = extreme / kTable[0], most = -1;
  for (const double end : {double{kTable[0]}, double{kTable[15]}})
    for (double by = 0.84; by < 1.13; by += 0.04) {
      const auto inverse = static_cast<float>(end * by / extreme);
      if (!std::isfinite(inverse)) return best;  // a scale that f16 cannot hold
      double along = 0, length = 0;
      for (int j = 0; j < kActElems; ++j) {
        const double w = kTable[nearest(x[j] * inverse)], of_w = weight[j] * w;
        along += of_w * x[j], length += of_w * w;
      }
      // The error of the best scale for these entries is the sum of weight * x^2, less this.
      const double less = along * along / length;
      if (less > most) most = less, best = along / length;
    }
  return best;
}

}  // namespace kvasir::iq4
