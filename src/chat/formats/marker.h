// Finds the end of a fixed text in characters that arrive one at a time.
#pragma once

#include <string_view>

namespace kvasir {

/// Requires: the first character of the text occurs only once in it.
class Marker {
 public:
  explicit Marker(std::string_view text) : text_(text) {}
  /// Returns true when this character completes the text.
  bool take(char c) {
    matched_ = c == text_[matched_] ? matched_ + 1 : c == text_[0] ? 1 : 0;
    if (matched_ < text_.size()) return false;
    matched_ = 0;
    return true;
  }

 private:
  std::string_view text_;
  size_t matched_ = 0;
};

}  // namespace kvasir
