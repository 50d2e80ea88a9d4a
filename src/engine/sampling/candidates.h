// The tokens that may still be chosen: edits of single logits, filters, and the draw. chain.cc runs the samplers in
// order; weight_sums.h sums rows that are too long to sort.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include <kvasir/result.h>

namespace kvasir {

struct Candidate {
  float logit;
  int id;
};

/// The order of all sums and draws: logit descending, id ascending.
inline bool better(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

/// The `k` best of a row, in order, without logits of minus infinity.
std::vector<Candidate> best_of(std::span<const float> row, size_t k);

/// The weight of a candidate is e^((logit - best logit) / temperature), with temperature 1 until set_temperature().
/// Every function has the result of sorting all candidates and summing weights in double in that order; a row longer
/// than kShort is sorted only when necessary.
class Candidates {
 public:
  /// Rows up to this length are always sorted.
  static constexpr size_t kShort = 1024;

  /// Requires: the row outlives this. Errors: no logits, one that is not finite.
  static Result<Candidates> of(std::span<const float> row);
  Candidates(Candidates&&) = default;
  Candidates& operator=(Candidates&&) = default;

  /// Number of ids; all are below it.
  size_t vocabulary() const { return row_.size(); }
  size_t left() const { return left_; }

  /// The logit of a token; empty for an id outside the vocabulary or a removed token.
  std::optional<float> logit(int id) const;
  /// Requires: logit(id). Values beyond the range of float are clamped.
  void set(int id, double logit);
  void remove(int id);
  /// Removes every token whose bit is zero. `mask` has one bit for every id of the vocabulary.
  void allow(std::span<const uint64_t> mask);
  void set_temperature(double temperature) { temperature_ = temperature; }

  /// Keeps the k best. Requires: k > 0.
  void take_best(size_t k);
  /// Keeps the fewest best candidates whose weights sum to at least this share of all weights; at least one.
  void take_share(double share);
  /// Keeps the best candidate, and those with at least this share of its weight.
  void take_likely(double share);

  /// All remaining candidates, in order.
  std::span<const Candidate> sorted();
  /// The weights of sorted(), in its order.
  std::vector<double> weights();
  /// Replaces all candidates by some of sorted(), in the same order. Requires: `some` is not empty.
  void replace(std::vector<Candidate> some);

  /// Requires: left() > 0.
  int best() const;
  /// The first token whose running sum of weights exceeds `u` of their total. Requires: left() > 0, u in [0, 1).
  int draw(double u);

  /// For tests: how often a sum was too close to a bound to decide without sorting.
  int full_sorts() const { return full_sorts_; }

 private:
  Candidates(std::span<const float> row, float largest) : row_(row), largest_(largest), left_(row.size()) {}
  float* editable();
  float best_logit() const;
  void cut_after(const Candidate& last);
  void sort_all();
  std::optional<Candidate> last_of_share(double share);
  std::optional<Candidate> reaching_of_row(double share) const;
  std::optional<Candidate> reaching_of_few(double share) const;

  // The candidates are either the entries of a row, indexed by id, that are not worse than `last_`, or a list in order.
  bool listed_ = false;
  std::span<const float> row_;  // minus infinity: removed
  float largest_;               // of the row as it was given
  bool edited_ = false;
  std::vector<float> own_row_;  // backs row_ once a logit was edited
  Candidate last_{std::numeric_limits<float>::lowest(), std::numeric_limits<int>::max()};
  std::vector<Candidate> list_;
  size_t left_;
  double temperature_ = 1.0;
  int full_sorts_ = 0;
};

}  // namespace kvasir
