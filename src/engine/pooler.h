// An embedding, computed over passes: sums of final-norm states in the order of positions, so that the division into
// passes changes no bit.
#pragma once

#include <span>
#include <vector>

#include <kvasir/engine.h>

namespace kvasir {

class Pooler {
 public:
  /// `hidden`: floats in a state. Requires: the text is not empty.
  Pooler(Pooling pooling, std::vector<int> text, size_t hidden)
      : pooling_(pooling), text_(std::move(text)), sum_(hidden) {}

  /// The next tokens to feed, at most `most`. A session that lost its positions is fed the text again, up to the next
  /// state needed. The feed is valid until the next call.
  Feed next(Session& session, int most);
  /// Takes the states of the feed of next(): none, or those of all its tokens.
  void take(std::span<const float> hidden);
  bool done() const { return pooled_ == text_.size(); }
  std::span<const int> text() const { return text_; }
  /// The mean (or last) of the states, L2-normalised. Requires: done().
  std::vector<float> result() const;

 private:
  Pooling pooling_;
  std::vector<int> text_;
  std::vector<double> sum_;
  size_t pooled_ = 0;  // number of states pooled
};

}  // namespace kvasir
