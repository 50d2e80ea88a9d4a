// Stop strings over streamed text: what may be shown already, and whether the text has ended.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kvasir {

class StopMatcher {
 public:
  explicit StopMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  /// Adds text; returns the part that no stop string can still begin in. After a match it returns what came before it.
  std::string push(std::string_view text);
  /// What was held back, when the text ends without a match.
  std::string finish();
  bool stopped() const { return stopped_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace kvasir
