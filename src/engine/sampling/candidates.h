// The tokens that may still be chosen: edits of single logits, filters, and the draw. Which sampler runs when is in
// chain.cc; sums over rows too long to sort are in weight_sums.h.
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

/// The `k` best of a row, in order. Logits of minus infinity are left out.
std::vector<Candidate> best_of(std::span<const float> row, size_t k);

/// The weight of a candidate is e^((logit - best logit) / temperature), with temperature 1 until set_temperature. The
/// result of every function is that of sorting all candidates and summing weights in double in that order; a row that
/// is longer than kShort is sorted only where that is needed.
class Candidates {
 public:
  /// Lists up to this length are sorted and summed without further thought.
  static constexpr size_t kShort = 1024;

  /// Requires: the row outlives this. Errors: no logits, one that is not finite.
  static Result<Candidates> of(std::span<const float> row);
  Candidates(Candidates&&) = default;
  Candidates& operator=(Candidates&&) = default;

  /// Ids are below this.
  size_t vocabulary() const { return row_.size(); }
  size_t left() const { return left_; }

  /// The logit of a token; nothing for an id outside the vocabulary or a token that was removed.
  std::optional<float> logit(int id) const;
  /// Requires: logit(id). Values beyond the range of float are cut to it.
  void set(int id, double logit);
  void remove(int id);
  /// Removes every token whose bit is zero; one bit for every id of the vocabulary.
  void keep_marked(std::span<const uint64_t> mask);
  void set_temperature(double temperature) { temperature_ = temperature; }

  /// Keeps the k best. Requires: k > 0.
  void keep_best(size_t k);
  /// Keeps the fewest of the best whose weights sum up to this share of all weights; at least one.
  void keep_share(double share);
  /// Keeps the best one and those of at least this share of its weight.
  void keep_likely(double share);

  /// All that are left, in order.
  std::span<const Candidate> sorted();
  /// Weights of sorted().
  std::vector<double> weights();
  /// Replaces all candidates by some of sorted(), in the same order. Requires: not empty.
  void keep(std::vector<Candidate> some);

  /// Requires for all of these: left() > 0.
  int best() const;
  /// The token at `u` of [0, 1) of the weights.
  int draw(double u);

  /// For tests: how often a sum was too close to a bound to be told without sorting.
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

  // Either a row by id, of which those not worse than `last_` are candidates, or a list in order.
  bool listed_ = false;
  std::span<const float> row_;  // minus infinity: removed
  float largest_;               // of the row as given
  bool edited_ = false;
  std::vector<float> own_row_;  // what row_ shows once a logit was edited
  Candidate last_{std::numeric_limits<float>::lowest(), std::numeric_limits<int>::max()};
  std::vector<Candidate> list_;
  size_t left_;
  double temperature_ = 1.0;
  int full_sorts_ = 0;
};

}  // namespace kvasir
