// An embedding as passes compute it: sums of final-norm states, in the order of positions, so that the cut into passes
// changes no bit.
#pragma once

#include <span>
#include <vector>

#include <kvasir/engine.h>

namespace kvasir {

class Pooler {
 public:
  /// `hidden`: floats of a state. Requires: the text is not empty.
  Pooler(Pooling pooling, std::vector<int> text, size_t hidden)
      : pooling_(pooling), text_(std::move(text)), sum_(hidden) {}

  /// The next tokens of the text for a session, at most `most`. One whose states were lost is fed the text again, up to
  /// the state that comes next. The feed lives until the next call.
  Feed next(Session& session, int most);
  /// The states of what next() asked for: none, or all of its tokens.
  void take(std::span<const float> hidden);
  bool done() const { return pooled_ == text_.size(); }
  std::span<const int> text() const { return text_; }
  /// The mean (or last) of the states, L2-normalised. Requires: done().
  std::vector<float> result() const;

 private:
  Pooling pooling_;
  std::vector<int> text_;
  std::vector<double> sum_;
  size_t pooled_ = 0;  // states
};

}  // namespace kvasir
