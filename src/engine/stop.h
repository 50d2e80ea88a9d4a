// Stop strings over streamed text: what may be shown already, and whether the text has ended.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kvasir {

class StopMatcher {
 public:
  /// `keeps`: the stop string itself is part of the text.
  explicit StopMatcher(std::vector<std::string> stops, bool keeps = false) : stops_(std::move(stops)), keeps_(keeps) {}

  /// Adds text; returns the part that no stop string can still begin in. After a match it returns what came before its
  /// end.
  std::string push(std::string_view text);
  /// What was held back, when the text ends without a match.
  std::string finish();
  bool stopped() const { return stopped_; }
  /// The stop string that ended the text.
  const std::string& match() const { return match_; }

 private:
  std::vector<std::string> stops_;
  std::string held_, match_;
  bool keeps_, stopped_ = false;
};

}  // namespace kvasir
