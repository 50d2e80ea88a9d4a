// How long a pass takes, learned from those that were run, and how many tokens fit a time. Knows no sequences.
#pragma once

#include <array>
#include <cstdint>

namespace kvasir::sched {

/// The shape of a pass, as far as its time depends on it.
struct PassShape {
  int tokens = 0;
  int64_t positions = 0;  ///< that its tokens attend to, summed over them
};

/// seconds = a + b * tokens + c * positions, none of the three below 0: least squares over the passes so far, the last
/// of them weighted most (half of the weight is in the last 44).
class Pace {
 public:
  void add(const PassShape& pass, double seconds);
  /// False until enough passes were seen.
  bool knows() const { return passes_ >= kLeastPasses; }
  /// Seconds. Requires: knows().
  double predict(const PassShape& pass) const;

  /// How many tokens of a prompt that is computed up to `depth` a pass takes besides `others`, so that it is over in
  /// `seconds`: a multiple of 16, 16 at least (a prompt always moves), `most` at most.
  int prompt_tokens(double seconds, const PassShape& others, int64_t depth, int most) const;

 private:
  static constexpr int kLeastPasses = 4;
  static constexpr int kTerms = 3;
  using Terms = std::array<double, kTerms>;
  static Terms terms_of(const PassShape& pass);
  void fit();

  std::array<Terms, kTerms> products_{};  // weighted sums of term * term
  Terms times_{};                         // and of term * seconds
  Terms factors_{};
  int passes_ = 0;
};

}  // namespace kvasir::sched
