// Shared by measurements over a text: its windows, feeding one in pieces, log-sum-exp, means. The measurements are in
// perplexity.h and drift.h.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include <kvasir/engine.h>

namespace kvasir {

/// Consecutive whole windows of a text. In each, the tokens after the middle one (index size / 2) are scored.
class TextWindows {
 public:
  /// Cuts at most `asked` windows of `size` tokens, 0 for all. `bos`, if given, replaces the first token of each.
  /// Errors: fewer ids than one window takes, a window under 3 tokens, a negative count, an id that the model has no
  /// row for.
  static Result<TextWindows> cut(std::span<const int> ids, std::optional<int> bos, int size, int asked,
                                 const Model& model);

  int size() const { return size_; }
  int count() const { return count_; }
  std::vector<int> at(int w) const;

 private:
  std::span<const int> ids_;
  std::optional<int> bos_;
  int size_ = 0, count_ = 0;
};

/// Takes the next tokens of the text, and for each session the logits [next][vocab] that predict them.
using ScoreRows = std::function<void(std::span<const int> next, const PassOutput& sessions)>;

/// Clears the sessions and feeds `window` except its last token to all of them, in the same steps. `score` is called
/// for the tokens after the middle one, in order, a few at a time. Errors: those of Engine::step.
Result<void> score_window(Engine& engine, std::span<Session> sessions, std::span<const int> window,
                          const ScoreRows& score);

/// ln of the sum of e^x, in double, in the order of the row. -ln p(id) is this minus row[id].
double log_sum_exp(std::span<const float> row);

/// Mean and variance, one value at a time (Welford 1962).
class Moments {
 public:
  void add(double x);
  int64_t n() const { return n_; }
  double mean() const { return mean_; }
  /// Standard error of the mean; 0 for fewer than two values, for which it is undefined.
  double standard_error() const;

 private:
  int64_t n_ = 0;
  double mean_ = 0, squares_ = 0;
};

}  // namespace kvasir
