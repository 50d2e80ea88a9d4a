// Stop strings over streamed text: which part may be shown already, and whether the text has ended.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kvasir {

class StopMatcher {
 public:
  /// `keeps`: the stop string is part of the text.
  explicit StopMatcher(std::vector<std::string> stops, bool includes_stop = false)
      : stops_(std::move(stops)), includes_stop_(includes_stop) {}

  /// Adds text. Returns the part in which no stop string can begin any more; on a match, the text before it (with
  /// `keeps`, up to its end).
  std::string push(std::string_view text);
  /// Returns the text held back, when the text ends without a match.
  std::string finish();
  bool stopped() const { return stopped_; }
  /// The stop string that ended the text.
  const std::string& match() const { return match_; }

 private:
  std::vector<std::string> stops_;
  std::string held_, match_;
  bool includes_stop_, stopped_ = false;
};

}  // namespace kvasir
