// Summing weights by intervals of the logit.
#include "engine/sampling/weight_sums.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/system.h"
#include "engine/sampling/float_order.h"
#include "math/functions_f64.h"
#include "math/targets.h"

namespace kvasir {
namespace {

// Intervals 1/128 wide around multiples of 1/128, down to -50; the last one collects what is not summed.
constexpr double kIntervalsPerUnit = 128, kSpan = 50;
constexpr int kIntervals = static_cast<int>(kIntervalsPerUnit * kSpan);
constexpr size_t kBlock = 64;

// The weight at the middle of every interval.
const std::array<double, kIntervals>& middles() {
  static const auto table = [] {
    std::array<double, kIntervals> t;
    for (int i = 0; i < kIntervals; ++i) t[static_cast<size_t>(i)] = exp_f64(-i / kIntervalsPerUnit);
    return t;
  }();
  return table;
}

// The arguments of the weigh_logits kernel, except the logits.
WeighArgs args_for(double best, double scale) {
  WeighArgs args;
  args.best = best;
  args.scale = scale;
  args.limit = kIntervals;
  args.interval = 1 / kIntervalsPerUnit;
  return args;
}

const Kernels& kernels() {
  static const Kernels& chosen = []() -> const Kernels& {
    const auto target = choose_cpu_target();
    return target ? kernels_for(*target) : kScalarKernels;
  }();
  return chosen;
}

// The interval of one logit, in the lowest bits of `rounded`, and its weight divided by that of the interval's middle.
struct Place {
  double rounded, weight;
};
Place place_of(float logit, double best, double scale) {
  Place place;
  WeighArgs args = args_for(best, scale);
  args.x = &logit;
  args.n = 1;
  args.least = logit;
  args.rounded = &place.rounded;
  args.weights = &place.weight;
  kScalarKernels.weigh_logits(args);
  return place;
}

inline size_t interval_at(double rounded) {
  return static_cast<size_t>(static_cast<uint32_t>(std::bit_cast<uint64_t>(rounded)));
}

}  // namespace

WeightSums::WeightSums(std::span<const float> row, const Candidate& last, float best, double temperature)
    : row_(row), last_(last), best_(best), scale_(kIntervalsPerUnit / temperature), sums_(kIntervals + 1) {
  for_each_stretch(row, last, [this](size_t, std::span<const float> part, float least) { add(part, least); });
  for (int i = 0; i < kIntervals; ++i) {
    sums_[static_cast<size_t>(i)] *= middles()[static_cast<size_t>(i)];
    total_ += sums_[static_cast<size_t>(i)];
  }
  const double n = static_cast<double>(row.size());
  bound_ = total_ * (4 * (n + kIntervals) * 0x1p-53 + 2e-13) + n * 0x1p-72;
}

void WeightSums::add(std::span<const float> row, float least) {
  std::array<float, kBlock> rest;
  std::array<double, kBlock> rounded, weight;
  WeighArgs args = args_for(best_, scale_);
  args.n = kBlock;
  args.least = least;
  args.rounded = rounded.data();
  args.weights = weight.data();
  double* const sums = sums_.data();
  for (size_t begin = 0; begin < row.size(); begin += kBlock) {
    args.x = row.data() + begin;
    if (row.size() - begin < kBlock) {
      rest.fill(-std::numeric_limits<float>::infinity());
      std::copy(args.x, row.data() + row.size(), rest.begin());
      args.x = rest.data();
    }
    kernels().weigh_logits(args);
    for (size_t i = 0; i < kBlock; ++i) sums[interval_at(rounded[i])] += weight[i];
  }
}

int WeightSums::interval_of(float logit) const {
  return static_cast<int>(interval_at(place_of(logit, best_, scale_).rounded));
}

double WeightSums::weight_of(float logit) const {
  const Place place = place_of(logit, best_, scale_);
  return place.weight * middles()[interval_at(place.rounded)];
}

// Interval numbers rise as logits fall, so bisection over all floats finds where an interval ends.
float WeightSums::least_logit_of(int interval) const {
  int64_t in = order_of(static_cast<float>(best_)), out = order_of(-std::numeric_limits<float>::infinity());
  while (in - out > 1) {
    const int64_t middle = out + (in - out) / 2;
    (interval_of(at_order(static_cast<int32_t>(middle))) <= interval ? in : out) = middle;
  }
  return at_order(static_cast<int32_t>(in));
}

std::vector<Candidate> WeightSums::members(int interval) const {
  const float low = least_logit_of(interval);
  const float above = interval == 0 ? std::numeric_limits<float>::infinity() : least_logit_of(interval - 1);
  const float high = std::nextafter(above, -std::numeric_limits<float>::infinity());
  std::vector<Candidate> found;
  for_each_stretch(row_, last_, [&](size_t first, std::span<const float> part, float least) {
    const float from = std::max(low, least);
    for_each_between(part, from, high, [&](size_t i) { found.push_back({part[i], static_cast<int>(first + i)}); });
  });
  if (!std::is_sorted(found.begin(), found.end(), better)) std::sort(found.begin(), found.end(), better);
  return found;
}

std::optional<Candidate> WeightSums::reaching(double share) const {
  const double target = share * total_;
  double sum = 0;
  int interval = 0;
  while (interval < kIntervals && sum + sums_[static_cast<size_t>(interval)] < target - bound_)
    sum += sums_[static_cast<size_t>(interval++)];
  if (interval == kIntervals) return {};
  for (const Candidate& c : members(interval)) {
    sum += weight_of(c.logit);
    if (sum > target + bound_) return c;
    if (sum >= target - bound_) return {};
  }
  return {};
}

}  // namespace kvasir
