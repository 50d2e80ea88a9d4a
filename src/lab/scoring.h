// What every measurement over a text shares: its windows, feeding one piece by piece, what logits say of a token,
// means. What is measured is perplexity.h's and drift.h's.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include <kvasir/engine.h>

namespace kvasir {

/// Whole windows of a text, one after the other. In each the tokens after its middle one (size / 2) are scored.
class TextWindows {
 public:
  /// `asked` windows at most, 0 for all. `bos`, where given, stands in for a window's first token.
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

/// Gets the tokens that were to come, and for each session the rows of logits that predict them.
using ScoreRows = std::function<void(std::span<const int> next, const PassOutput& sessions)>;

/// Clears the sessions and feeds all of them `window` but its last token, side by side; `score` is called for the
/// tokens after the middle one, in order, a few at a time. Errors: those of Engine::step.
Result<void> score_window(Engine& engine, std::span<Session> sessions, std::span<const int> window,
                          const ScoreRows& score);

/// ln of the sum of e^x, in double, in the order of the row: -ln p(id) is this less row[id].
double log_sum_exp(std::span<const float> row);

/// Mean and variance, one value at a time (Welford 1962).
class Moments {
 public:
  void add(double x);
  int64_t n() const { return n_; }
  double mean() const { return mean_; }
  /// 0 for a single value, of which it is not known.
  double standard_error() const;

 private:
  int64_t n_ = 0;
  double mean_ = 0, squares_ = 0;
};

}  // namespace kvasir
