// Shared by q4_k and q5_k: 256 elements in 8 parts of 32, element = scale * w - minimum. A part's scale and minimum are
// 6-bit multiples of the block's two f16 units. Contains their packing and the search for them.
// Source of the layout: ggml-org/ggml, ggml-common.h (block_q4_K, block_q5_K) and ggml-quants.c (get_scale_min_k4).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "dtype/integer_row_ops.h"

namespace kvasir::k_affine {

inline constexpr int kElems = 256, kParts = 8, kPart = 32;
inline constexpr int kHeaderBytes = 16;  // f16 unit of the scales, f16 unit of the minimums, 12 bytes of both
inline constexpr int kMostScale = 63;

/// Scale and minimum of one part, in the block's units.
struct Six {
  int scale = 0, minimum = 0;
};

/// Unpacks part p. For p < 4, byte p has scale p and byte p + 4 minimum p in the low 6 bits. For p >= 4, byte p + 4 has
/// the low 4 bits of scale p and of minimum p; their high 2 bits are the top bits of bytes p - 4 and p.
inline Six get_six(const std::byte* packed, int part) {
  const auto at = [&](int i) { return std::to_integer<int>(packed[i]); };
  if (part < 4) return {at(part) & 63, at(part + 4) & 63};
  return {(at(part + 4) & 15) | at(part - 4) >> 6 << 4, at(part + 4) >> 4 | at(part) >> 6 << 4};
}

inline void put_sixes(const std::array<Six, kParts>& six, std::byte* packed) {
  for (size_t p = 0; p < 4; ++p) {
    const Six low = six[p], high = six[p + 4];
    packed[p] = static_cast<std::byte>(low.scale | high.scale >> 4 << 6);
    packed[p + 4] = static_cast<std::byte>(low.minimum | high.minimum >> 4 << 6);
    packed[p + 8] = static_cast<std::byte>((high.scale & 15) | (high.minimum & 15) << 4);
  }
}

/// The part's scale and offset; w stays empty. Both products are exact: 11 bits times 6.
inline IntegerBlock scales_of(const std::byte* block, int part) {
  const Six six = get_six(block + 4, part);
  return {.w = {},
          .scale = half_at(block) * static_cast<float>(six.scale),
          .offset = -(half_at(block + 2) * static_cast<float>(six.minimum))};
}

/// Two parts share 32 bytes: the even part is in the low four bits.
inline void get_nibbles(const std::byte* packed, int part, int32_t* w) {
  const std::byte* bytes = packed + part / 2 * kPart;
  for (int j = 0; j < kPart; ++j) w[j] = std::to_integer<int>(bytes[j]) >> part % 2 * 4 & 15;
}
inline void put_nibbles(const int* w, std::byte* packed) {
  for (int i = 0; i < kElems / 2; ++i) {
    const int* low = w + i / kPart * 2 * kPart + i % kPart;
    packed[i] = static_cast<std::byte>((low[0] & 15) | (low[kPart] & 15) << 4);
  }
}

// ---- the search ---------------------------------------------------------------------------------------------------

/// x ~ scale * w - minimum with integer w in 0..most. Neither scale nor minimum is negative.
struct Fit {
  double scale = 0, minimum = 0;
};

/// Writes the nearest w for every x.
inline void round_to(Fit fit, const float* x, int most, float* w) {
  const double inverse = fit.scale > 0 ? 1 / fit.scale : 0;
  for (int j = 0; j < kPart; ++j)
    w[j] = static_cast<float>(static_cast<int>(std::clamp((x[j] + fit.minimum) * inverse, 0.0, double(most)) + 0.5));
}

inline double squared_error(Fit fit, const float* x, const float* w) {
  double error = 0;
  for (int j = 0; j < kPart; ++j) {
    const double e = fit.scale * w[j] - fit.minimum - x[j];
    error += e * e;
  }
  return error;
}

/// The best scale and minimum for given w: least squares, or a line through 0 if the minimum would be negative.
inline Fit least_squares(const float* x, const float* w) {
  double sum_w = 0, sum_ww = 0, sum_x = 0, sum_wx = 0;
  for (int j = 0; j < kPart; ++j) {
    sum_w += w[j], sum_ww += double{w[j]} * w[j];
    sum_x += x[j], sum_wx += double{w[j]} * x[j];
  }
  const double spread = kPart * sum_ww - sum_w * sum_w;
  Fit fit;
  if (spread > 0) fit.scale = std::max((kPart * sum_wx - sum_w * sum_x) / spread, 0.0);
  fit.minimum = (fit.scale * sum_w - sum_x) / kPart;
  if (fit.minimum >= 0) return fit;
  return {sum_ww > 0 ? std::max(sum_wx / sum_ww, 0.0) : 0.0, 0};
}

/// Tries steps from coarser than the range requires to slightly finer (which clips the ends), each improved by least
/// squares. On normally distributed numbers the error is a tenth below that of the range's own step.
inline Fit best_fit(const float* x, int most) {
  const Range range = range_of(x, kPart);
  const double low = std::min(double{range.low}, 0.0), width = range.high - low;
  if (!(width > 0)) return {0, -low};
  Fit best;
  double least = std::numeric_limits<double>::infinity();
  for (double steps = most - 3; steps <= most + 1; steps += 0.5) {
    float w[kPart];
    round_to({width / steps, -low}, x, most, w);
    const Fit fit = least_squares(x, w);
    round_to(fit, x, most, w);
    const double error = squared_error(fit, x, w);
    if (error < least) least = error, best = fit;
  }
  return best;
}

/// Tries the 6-bit numbers at and next to the wanted ones and returns the pair with the least error; `w` receives its
/// integers.
inline Six best_six(const float* x, Fit wanted, Fit unit, int most, int* w) {
  const auto near = [](double value, double step) {
    return step > 0 ? static_cast<int>(std::clamp(value / step + 0.5, 0.0, double(kMostScale))) : 0;
  };
  std::fill_n(w, kPart, 0);
  if (wanted.scale == 0 && wanted.minimum == 0) return {};  // all zeros, such as the padding of heads in a KV row
  const Six center{near(wanted.scale, unit.scale), near(wanted.minimum, unit.minimum)};
  Six best;
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 9; ++i) {
    const Six six{std::clamp(center.scale + i / 3 - 1, 0, kMostScale),
                  std::clamp(center.minimum + i % 3 - 1, 0, kMostScale)};
    const Fit fit{unit.scale * six.scale, unit.minimum * six.minimum};
    float rounded[kPart];
    round_to(fit, x, most, rounded);
    const double error = squared_error(fit, x, rounded);
    if (error >= least) continue;
    least = error, best = six;
    std::copy(rounded, rounded + kPart, w);
  }
  return best;
}

/// Writes the block's header, and the 256 integers to w. Returns how many of its two units saturated.
inline int64_t encode_header(const float* x, int most, std::byte* block, int* w) {
  std::array<Six, kParts> six{};
  std::array<Fit, kParts> fits{};
  const bool finite = !std::isnan(range_of(x, kElems).low);
  Fit largest{finite ? 0.0 : NAN, finite ? 0.0 : NAN};
  for (size_t p = 0; finite && p < kParts; ++p) {
    fits[p] = best_fit(x + p * kPart, most);
    largest = {std::max(largest.scale, fits[p].scale), std::max(largest.minimum, fits[p].minimum)};
  }
  const int64_t saturated = put_half(static_cast<float>(largest.scale / kMostScale), block) +
                            put_half(static_cast<float>(largest.minimum / kMostScale), block + 2);
  const Fit unit{half_at(block), half_at(block + 2)};
  if (!finite) std::fill_n(w, kElems, 0);
  for (size_t p = 0; finite && p < kParts; ++p) six[p] = best_six(x + p * kPart, fits[p], unit, most, w + p * kPart);
  put_sixes(six, block + 4);
  return saturated;
}

}  // namespace kvasir::k_affine
