// Shared by the types whose elements are scale * w - minimum with w >= 0: the search for the scale and minimum of a
// part (q4_1, q5_1), and for a block's two f16 units of which each part has integer multiples (q2_k, q4_k, q5_k). Each
// type packs them.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "dtype/error_weights.h"
#include "dtype/integer_row_ops.h"

namespace kvasir::affine_search {

/// x ~ scale * w - minimum with integer w in 0..most; the scale is not negative.
struct Fit {
  double scale = 0, minimum = 0;
};

/// A part of kPart elements. kAnyMinimum: the minimum may be negative.
template <int kPart, bool kAnyMinimum>
struct PartSearch {
  /// Writes the nearest w for every x.
  static void round_to(Fit fit, const float* x, int most, float* w) {
    const double inverse = fit.scale > 0 ? 1 / fit.scale : 0;
    for (int j = 0; j < kPart; ++j)
      w[j] = static_cast<float>(static_cast<int>(std::clamp((x[j] + fit.minimum) * inverse, 0.0, double(most)) + 0.5));
  }

  static double squared_error(Fit fit, const float* x, const float* weight, const float* w) {
    double error = 0;
    for (int j = 0; j < kPart; ++j) {
      const double e = fit.scale * w[j] - fit.minimum - x[j];
      error += weight[j] * e * e;
    }
    return error;
  }

  /// The best scale and minimum for given w: least squares, or a line through 0 if the minimum may not be negative and
  /// would be.
  static Fit least_squares(const float* x, const float* weight, const float* w) {
    double sum = 0, sum_w = 0, sum_ww = 0, sum_x = 0, sum_wx = 0;
    for (int j = 0; j < kPart; ++j) {
      const double of = weight[j], of_w = of * w[j];
      sum += of, sum_w += of_w, sum_ww += of_w * w[j];
      sum_x += of * x[j], sum_wx += of_w * x[j];
    }
    const double spread = sum * sum_ww - sum_w * sum_w;
    Fit fit;
    if (spread > 0) fit.scale = std::max((sum * sum_wx - sum_w * sum_x) / spread, 0.0);
    fit.minimum = sum > 0 ? (fit.scale * sum_w - sum_x) / sum : 0;
    if (kAnyMinimum || fit.minimum >= 0) return fit;
    return {sum_ww > 0 ? std::max(sum_wx / sum_ww, 0.0) : 0.0, 0};
  }

  /// Tries steps from coarser than the range requires to slightly finer (which clips the ends), each improved by least
  /// squares. On normally distributed numbers the error is a tenth below that of the range's own step. Requires: finite
  /// elements.
  static Fit best_fit(const float* x, const float* weight, int most) {
    const Range range = range_of(x, kPart);
    const double low = kAnyMinimum ? range.low : std::min(range.low, 0.0f), width = range.high - low;
    if (!(width > 0)) return {0, -low};
    Fit best;
    double least = std::numeric_limits<double>::infinity();
    for (double steps = std::max(most - 3, 1); steps <= most + 1; steps += 0.5) {
      float w[kPart];
      round_to({width / steps, -low}, x, most, w);
      const Fit fit = least_squares(x, weight, w);
      round_to(fit, x, most, w);
      const double error = squared_error(fit, x, weight, w);
      if (error < least) least = error, best = fit;
    }
    return best;
  }
};

/// Scale and minimum of one part, in the block's units.
struct Multiples {
  int scale = 0, minimum = 0;
};

/// Parts whose scales and minimums are integer multiples of two units, 0..kMostScale.
template <int kPart, int kMostScale>
struct Search {
  using Part = PartSearch<kPart, false>;

  /// Tries the integers at and next to the wanted ones and returns the pair with the least error; `w` receives its
  /// integers.
  static Multiples best_multiples(const float* x, const float* weight, Fit wanted, Fit unit, int most, int* w) {
    const auto near = [](double value, double step) {
      return step > 0 ? static_cast<int>(std::clamp(value / step + 0.5, 0.0, double(kMostScale))) : 0;
    };
    std::fill_n(w, kPart, 0);
    if (wanted.scale == 0 && wanted.minimum == 0) return {};  // all zeros, such as the padding of heads in a KV row
    const Multiples center{near(wanted.scale, unit.scale), near(wanted.minimum, unit.minimum)};
    Multiples best;
    double least = std::numeric_limits<double>::infinity();
    for (int i = 0; i < 9; ++i) {
      const Multiples multiples{std::clamp(center.scale + i / 3 - 1, 0, kMostScale),
                                std::clamp(center.minimum + i % 3 - 1, 0, kMostScale)};
      const Fit fit{unit.scale * multiples.scale, unit.minimum * multiples.minimum};
      float rounded[kPart];
      Part::round_to(fit, x, most, rounded);
      const double error = Part::squared_error(fit, x, weight, rounded);
      if (error >= least) continue;
      least = error, best = multiples;
      std::copy(rounded, rounded + kPart, w);
    }
    return best;
  }

  /// Searches for the units that make the sum of weighted squared errors small, written as f16 to `units` and `units` +
  /// 2, and for each part's multiples and the integers w, up to `most`. Units are NaN and all integers 0 if an element
  /// is not finite. Returns how many units saturated.
  template <size_t kParts>
  static int64_t fit(const float* x, const float* weight, int most, std::byte* units,
                     std::array<Multiples, kParts>* multiples, int* w) {
    std::array<Fit, kParts> fits{};
    const bool finite = !std::isnan(range_of(x, kPart * static_cast<int>(kParts)).low);
    Fit largest{finite ? 0.0 : NAN, finite ? 0.0 : NAN};
    for (size_t p = 0; finite && p < kParts; ++p) {
      fits[p] = Part::best_fit(x + p * kPart, weight + p * kPart, most);
      largest = {std::max(largest.scale, fits[p].scale), std::max(largest.minimum, fits[p].minimum)};
    }
    const int64_t saturated = put_half(static_cast<float>(largest.scale / kMostScale), units) +
                              put_half(static_cast<float>(largest.minimum / kMostScale), units + 2);
    const Fit unit{half_at(units), half_at(units + 2)};
    if (!finite) std::fill_n(w, kPart * kParts, 0);
    for (size_t p = 0; finite && p < kParts; ++p)
      (*multiples)[p] = best_multiples(x + p * kPart, weight + p * kPart, fits[p], unit, most, w + p * kPart);
    return saturated;
  }
};

}  // namespace kvasir::affine_search
