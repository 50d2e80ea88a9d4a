// Edits, filters and the draw over a row or a list of candidates.
#include "engine/sampling/candidates.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "engine/sampling/float_order.h"
#include "engine/sampling/weight_sums.h"
#include "math/functions_f64.h"

namespace kvasir {
namespace {

constexpr float kLargest = std::numeric_limits<float>::max();
constexpr float kRemoved = -std::numeric_limits<float>::infinity();
constexpr Candidate kAll{std::numeric_limits<float>::lowest(), std::numeric_limits<int>::max()};  // keeps everything
// Below this temperature, its reciprocal is too large for sums.
constexpr double kLeastSummable = 1e-30;

float as_float(double x) { return static_cast<float>(std::clamp<double>(x, -kLargest, kLargest)); }

struct Extent {
  float largest;
  bool finite;  ///< no infinity and no NaN, which lie at both ends of the order
};
Extent extent_of(std::span<const float> row) {
  int32_t most = std::numeric_limits<int32_t>::min(), least = std::numeric_limits<int32_t>::max();
  for (float x : row) {
    most = std::max(most, order_of(x));
    least = std::min(least, order_of(x));
  }
  const int32_t infinity = order_of(std::numeric_limits<float>::infinity());
  return {at_order(most), most < infinity && least > ~infinity};
}

size_t count_at_least(std::span<const float> row, float least) {
  size_t count = 0;
  for (size_t begin = 0; begin < row.size(); begin += 4096) {
    int32_t here = 0;
    for (float x : row.subspan(begin, std::min<size_t>(4096, row.size() - begin))) here += x >= least ? 1 : 0;
    count += static_cast<size_t>(here);
  }
  return count;
}

size_t count_of(std::span<const float> row, const Candidate& last) {
  size_t count = 0;
  for_each_stretch(row, last, [&count](size_t, auto part, float least) { count += count_at_least(part, least); });
  return count;
}

// Index at which the sum of the weights, in order, first satisfies `reached`; the last index if it never does.
template <class F>
size_t first_reaching(std::span<const double> weights, F&& reached) {
  double sum = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    sum += weights[i];
    if (reached(sum)) return i;
  }
  return weights.size() - 1;
}

double sum_of(std::span<const double> weights) {
  double total = 0;
  for (double x : weights) total += x;
  return total;
}

}  // namespace

// Skips what is not better than the k-th best so far: of equal logits, the lower ids came first.
std::vector<Candidate> best_of(std::span<const float> row, size_t k) {
  k = std::min(k, row.size());
  const size_t room = 2 * k + 64;
  std::vector<Candidate> kept;
  kept.reserve(std::min(room, row.size()));
  float bound = kRemoved;
  const auto at = [&kept](size_t i) { return kept.begin() + static_cast<std::ptrdiff_t>(i); };
  for (size_t i = 0; i < row.size() && k > 0; ++i) {
    if (!(row[i] > bound)) continue;
    kept.push_back({row[i], static_cast<int>(i)});
    if (kept.size() < room) continue;
    std::nth_element(kept.begin(), at(k - 1), kept.end(), better);
    kept.resize(k);
    bound = kept.back().logit;
  }
  std::sort(kept.begin(), kept.end(), better);
  if (kept.size() > k) kept.resize(k);
  return kept;
}

Result<Candidates> Candidates::of(std::span<const float> row) {
  if (row.empty()) return fail(Error::bad_argument, "no logits to choose from", "logits");
  const Extent extent = extent_of(row);
  if (extent.finite) return Candidates(row, extent.largest);
  const auto bad = std::find_if(row.begin(), row.end(), [](float x) { return !std::isfinite(x); });
  return fail(Error::not_finite, fmt::format("the logit of token {} is not finite", bad - row.begin()), "logits");
}

// ---- single tokens ------------------------------------------------------------------------------------------------

float* Candidates::editable() {
  if (!edited_) {
    edited_ = true;
    own_row_.assign(row_.begin(), row_.end());
    row_ = own_row_;
  }
  return own_row_.data();
}

std::optional<float> Candidates::logit(int id) const {
  if (id < 0 || static_cast<size_t>(id) >= row_.size()) return {};
  if (listed_) {
    for (const Candidate& c : list_)
      if (c.id == id) return c.logit;
    return {};
  }
  const Candidate c{row_[static_cast<size_t>(id)], id};
  if (c.logit == kRemoved || better(last_, c)) return {};
  return c.logit;
}

void Candidates::set(int id, double logit) {
  const float value = as_float(logit);
  if (!listed_ && last_.id != std::numeric_limits<int>::max()) sort_all();  // the order is about to change
  if (!listed_) {
    editable()[id] = value;
    return;
  }
  std::erase_if(list_, [id](const Candidate& c) { return c.id == id; });
  const Candidate changed{value, id};
  list_.insert(std::upper_bound(list_.begin(), list_.end(), changed, better), changed);
}

void Candidates::remove(int id) {
  if (!logit(id)) return;
  --left_;
  if (listed_)
    std::erase_if(list_, [id](const Candidate& c) { return c.id == id; });
  else
    editable()[id] = kRemoved;
}

void Candidates::allow(std::span<const uint64_t> mask) {
  const auto marked = [mask](size_t id) { return (mask[id / 64] >> (id % 64) & 1) != 0; };
  if (listed_) {
    std::erase_if(list_, [&](const Candidate& c) { return !marked(static_cast<size_t>(c.id)); });
    left_ = list_.size();
    return;
  }
  float* row = editable();
  for (size_t id = 0; id < row_.size(); ++id) row[id] = marked(id) ? row[id] : kRemoved;
  left_ = count_of(row_, last_);
}

// ---- rows and lists -----------------------------------------------------------------------------------------------

float Candidates::best_logit() const {
  if (listed_) return list_.front().logit;
  return edited_ ? extent_of(row_).largest : largest_;
}

void Candidates::sort_all() {
  if (listed_) return;
  list_.reserve(left_);
  for_each_stretch(row_, last_, [this](size_t first, std::span<const float> part, float least) {
    for (size_t i = 0; i < part.size(); ++i)
      if (part[i] >= least) list_.push_back({part[i], static_cast<int>(first + i)});
  });
  std::sort(list_.begin(), list_.end(), better);
  listed_ = true;
}

std::span<const Candidate> Candidates::sorted() {
  sort_all();
  return list_;
}

std::vector<double> Candidates::weights() {
  sort_all();
  std::vector<double> w;
  w.reserve(list_.size());
  const double best = list_.front().logit;
  for (const Candidate& c : list_) w.push_back(exp_f64((static_cast<double>(c.logit) - best) / temperature_));
  return w;
}

void Candidates::replace(std::vector<Candidate> some) {
  sort_all();
  list_ = std::move(some);
  left_ = list_.size();
}

void Candidates::cut_after(const Candidate& last) {
  if (listed_) {
    list_.erase(std::upper_bound(list_.begin(), list_.end(), last, better), list_.end());
    left_ = list_.size();
    return;
  }
  last_ = last;
  left_ = count_of(row_, last_);
  if (left_ <= kShort) sort_all();
}

// ---- filters ------------------------------------------------------------------------------------------------------

void Candidates::take_best(size_t k) {
  if (k >= left_) return;
  if (!listed_ && last_.id == std::numeric_limits<int>::max()) {
    list_ = best_of(row_, k);
    listed_ = true;
  }
  sort_all();
  list_.resize(k);
  left_ = k;
}

std::optional<Candidate> Candidates::reaching_of_row(double share) const {
  return WeightSums(row_, last_, best_logit(), temperature_).reaching(share);
}

// For a long row with few candidates left: gathers them, by ascending id as in the row, and sums these alone.
std::optional<Candidate> Candidates::reaching_of_few(double share) const {
  std::vector<float> logits;
  std::vector<int> ids;
  logits.reserve(left_);
  ids.reserve(left_);
  for_each_stretch(row_, last_, [&](size_t first, std::span<const float> part, float least) {
    for_each_between(part, least, kLargest, [&](size_t i) {
      logits.push_back(part[i]);
      ids.push_back(static_cast<int>(first + i));
    });
  });
  auto found = WeightSums(logits, kAll, best_logit(), temperature_).reaching(share);
  if (found) found->id = ids[static_cast<size_t>(found->id)];
  return found;
}

// The first candidate at which a long row's weights sum to this share; empty, and the candidates sorted, if the row is
// short or the sum is too close to decide.
std::optional<Candidate> Candidates::last_of_share(double share) {
  if (!listed_ && left_ > kShort && temperature_ >= kLeastSummable) {
    if (const auto found = left_ < row_.size() / 4 ? reaching_of_few(share) : reaching_of_row(share)) return found;
    ++full_sorts_;
  }
  sort_all();
  return {};
}

void Candidates::take_share(double share) {
  if (const auto last = last_of_share(share)) return cut_after(*last);
  const std::vector<double> w = weights();
  const double target = share * sum_of(w);
  cut_after(list_[first_reaching(w, [target](double sum) { return !(sum < target); })]);
}

// In a long row, weights are computed only near the bound; logits decide about the others.
void Candidates::take_likely(double share) {
  if (share <= 0) return;
  const float best_one = best_logit();
  const double best = best_one;
  const auto likely = [&](float logit) {
    return !(exp_f64((static_cast<double>(logit) - best) / temperature_) < share);
  };
  if (listed_ || left_ <= kShort) {
    sort_all();
    while (list_.size() > 1 && !likely(list_.back().logit)) list_.pop_back();
    left_ = list_.size();
    return;
  }
  const double bound = log_f64(share) * temperature_, margin = 1e-12 * (std::fabs(bound) + std::fabs(best) + 1);
  const double sure = best + bound + margin;
  const float hopeless = std::nextafter(as_float(best + bound - margin), kRemoved);
  Candidate last{std::nextafter(best_one, kLargest), -1};  // better than all
  for_each_stretch(row_, last_, [&](size_t first, std::span<const float> part, float least) {
    for_each_between(part, std::max(least, hopeless), last.logit, [&](size_t i) {
      const Candidate c{part[i], static_cast<int>(first + i)};
      if (better(last, c) && (c.logit > sure || likely(c.logit))) last = c;
    });
  });
  cut_after(last);
}

// ---- the choice ---------------------------------------------------------------------------------------------------

int Candidates::best() const {
  if (listed_) return list_.front().id;
  return static_cast<int>(std::find(row_.begin(), row_.end(), best_logit()) - row_.begin());
}

int Candidates::draw(double u) {
  if (const auto chosen = last_of_share(u)) return chosen->id;
  const std::vector<double> w = weights();
  const double target = u * sum_of(w);
  return list_[first_reaching(w, [target](double sum) { return target < sum; })].id;
}

}  // namespace kvasir
