// Marks in a text that comes one character at a time.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kvasir {

/// Holds back what may become a mark, and with `holds_lines` the ends of lines, until it is known what follows them.
class MarkSearch {
 public:
  explicit MarkSearch(std::vector<std::string_view> marks, bool holds_lines = false)
      : marks_(std::move(marks)), holds_lines_(holds_lines) {}

  /// The text that is certain now. `found`: the mark that ended with this character.
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

  /// Ends of lines after the last certain text.
  std::string lines() { return std::exchange(lines_, {}); }
  /// All that is held.
  std::string rest() { return lines() + std::exchange(partial_, {}); }

 private:
  std::vector<std::string_view> marks_;
  bool holds_lines_;
  std::string partial_, lines_;
};

}  // namespace kvasir
