// Matching stop strings across token boundaries.
#include "engine/stop.h"

#include <algorithm>
#include <utility>

namespace kvasir {

std::string StopMatcher::push(std::string_view text) {
  if (stopped_) return {};
  held_ += text;
  // Takes the match that ends first, and the longest of those, so that the result does not depend on how the text was
  // split.
  size_t begin = std::string::npos, end = std::string::npos;
  for (const std::string& stop : stops_) {
    const size_t at = stop.empty() ? std::string::npos : held_.find(stop);
    if (at == std::string::npos || at + stop.size() > end || (at + stop.size() == end && at > begin)) continue;
    begin = at;
    end = at + stop.size();
  }
  if (end != std::string::npos) {
    stopped_ = true;
    match_ = held_.substr(begin, end - begin);
    return held_.substr(0, includes_stop_ ? end : begin);
  }
  size_t keep = 0;  // the longest suffix that begins a stop string
  for (const std::string& stop : stops_)
    for (size_t n = std::min(held_.size(), stop.empty() ? 0 : stop.size() - 1); n > keep; --n)
      if (held_.compare(held_.size() - n, n, stop, 0, n) == 0) keep = n;
  std::string out = held_.substr(0, held_.size() - keep);
  held_.erase(0, out.size());
  return out;
}

std::string StopMatcher::finish() {
  if (stopped_) return {};
  return std::exchange(held_, {});
}

}  // namespace kvasir
