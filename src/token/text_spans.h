// Spans of a text (data) in which no added token is matched, and how they move when the text is split or normalised.
#pragma once

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include <kvasir/tokenizer.h>

namespace kvasir {

/// Returns the first of the ascending `spans` that ends after `at`; spans.end() if there is none.
inline std::span<const TextSpan>::iterator span_after(std::span<const TextSpan> spans, std::size_t at) {
  return std::upper_bound(spans.begin(), spans.end(), at, [](std::size_t i, const TextSpan& s) { return i < s.end; });
}

/// Returns the parts of `spans` in the bytes from `begin` to `end`, relative to `begin`.
inline std::vector<TextSpan> spans_within(std::span<const TextSpan> spans, std::size_t begin, std::size_t end) {
  std::vector<TextSpan> inside;
  for (auto span = span_after(spans, begin); span != spans.end() && span->begin < end; ++span)
    inside.push_back({std::max(span->begin, begin) - begin, std::min(span->end, end) - begin});
  return inside;
}

/// Returns where `spans` lie after each part of `text`, inside and between spans, has changed to `length_of(part)`
/// bytes.
template <class LengthOf>
std::vector<TextSpan> moved_spans(std::span<const TextSpan> spans, std::string_view text, const LengthOf& length_of) {
  std::vector<TextSpan> moved;
  std::size_t at = 0, length = 0;
  const auto go_to = [&](std::size_t end) {
    length += length_of(text.substr(at, end - at));
    at = end;
    return length;
  };
  for (const TextSpan& span : spans) {
    const std::size_t begin = go_to(span.begin);
    moved.push_back({begin, go_to(span.end)});
  }
  go_to(text.size());
  return moved;
}

}  // namespace kvasir
