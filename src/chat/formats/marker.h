// A text that is looked for one character at a time.
#pragma once

#include <string_view>

namespace kvasir {

/// Requires: the text's first character is not in it twice.
class Marker {
 public:
  explicit Marker(std::string_view text) : text_(text) {}
  /// Whether the text ends with this character.
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
