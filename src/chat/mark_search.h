// Finds marks in a text that arrives one character at a time.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kvasir {

/// Holds back characters that may become a mark. With `holds_lines` it also holds back line breaks until other text
/// follows.
class MarkSearch {
 public:
  explicit MarkSearch(std::vector<std::string_view> marks, bool holds_lines = false)
      : marks_(std::move(marks)), holds_lines_(holds_lines) {}

  /// Returns the text that is certainly not part of a mark. Sets `found` to the mark that ends with this character.
  std::string take(char c, std::string_view* found) {
    std::string certain;
    partial_ += c;
    while (!partial_.empty()) {
      const auto mark = std::find_if(marks_.begin(), marks_.end(), [&](auto m) { return m.starts_with(partial_); });
      if (mark != marks_.end()) {
        if (mark->size() == partial_.size()) {
          *found = *mark;
          partial_.clear();
        }
        break;
      }
      if (holds_lines_ && partial_[0] == '\n') {
        lines_ += '\n';
      } else {
        certain += std::exchange(lines_, {});
        certain += partial_[0];
      }
      partial_.erase(0, 1);
    }
    return certain;
  }

  /// Returns and clears the line breaks held after the last certain text.
  std::string lines() { return std::exchange(lines_, {}); }
  /// Returns and clears all held characters.
  std::string rest() { return lines() + std::exchange(partial_, {}); }

 private:
  std::vector<std::string_view> marks_;
  bool holds_lines_;
  std::string partial_, lines_;
};

}  // namespace kvasir
