// How long a pass takes, learned from earlier passes, and how many tokens fit into a given time. Knows no sequences.
#pragma once

#include <array>
#include <cstdint>

namespace kvasir::sched {

/// The features of a pass that determine its time.
struct PassShape {
  int tokens = 0;
  int64_t positions = 0;  ///< positions attended to, summed over the tokens
};

/// Model: seconds = a + b * tokens + c * positions, all three factors at least 0. Least squares over the passes so far,
/// recent ones weighted more (the last 44 have half of the weight).
class Pace {
 public:
  void add(const PassShape& pass, double seconds);
  /// False until kLeastPasses passes were added.
  bool knows() const { return passes_ >= kLeastPasses; }
  /// Predicted seconds. Requires: knows().
  double predict(const PassShape& pass) const;

  /// Number of prompt tokens that a pass can compute besides `others` within `seconds`, for a prompt computed up to
  /// `depth`. A multiple of 16 and at least 16, so that a prompt always advances; then at most `most`.
  int prompt_tokens(double seconds, const PassShape& others, int64_t depth, int most) const;

 private:
  static constexpr int kLeastPasses = 4;
  static constexpr int kTerms = 3;
  using Terms = std::array<double, kTerms>;
  static Terms terms_of(const PassShape& pass);
  void fit();

  std::array<Terms, kTerms> products_{};  // weighted sums of term * term
  Terms times_{};                         // weighted sums of term * seconds
  Terms factors_{};
  int passes_ = 0;
};

}  // namespace kvasir::sched
