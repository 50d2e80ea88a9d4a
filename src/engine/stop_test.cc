// Stop strings: the result does not depend on how the text is split, and no shown text has to be taken back.
#include "engine/stop.h"

#include <algorithm>
#include <cstdint>

#include <gtest/gtest.h>

namespace kvasir {
namespace {

// The expected text, character by character: it ends where it first ends in a stop string; the longest such one counts.
std::string expected_text(const std::string& text, const std::vector<std::string>& stops, bool* stopped) {
  for (size_t n = 1; n <= text.size(); ++n) {
    size_t longest = 0;
    for (const std::string& stop : stops)
      if (!stop.empty() && std::string_view(text).substr(0, n).ends_with(stop))
        longest = std::max(longest, stop.size());
    if (longest > 0) {
      *stopped = true;
      return text.substr(0, n - longest);
    }
  }
  *stopped = false;
  return text;
}

TEST(Stop, WithoutStopsTextPassesAtOnce) {
  StopMatcher none({});
  EXPECT_EQ(none.push("abc"), "abc");
  EXPECT_EQ(none.finish(), "");
  StopMatcher empty({""});
  EXPECT_EQ(empty.push("abc"), "abc");
  EXPECT_FALSE(empty.stopped());
}

TEST(Stop, MatchesAcrossPieces) {
  StopMatcher matcher({"END"});
  EXPECT_EQ(matcher.push("The E"), "The ");
  EXPECT_FALSE(matcher.stopped());
  EXPECT_EQ(matcher.push("N"), "");
  EXPECT_EQ(matcher.push("D of it"), "");
  EXPECT_TRUE(matcher.stopped());
  EXPECT_EQ(matcher.push("more"), "") << "after a match there is no text";
  EXPECT_EQ(matcher.finish(), "");
}

TEST(Stop, TheStopIsKnownAndMayBeKept) {
  for (const bool keeps : {false, true}) {
    StopMatcher matcher({"END", "ND."}, keeps);
    EXPECT_EQ(matcher.push("The E"), "The ");
    EXPECT_EQ(matcher.push("ND of it"), keeps ? "END" : "");
    EXPECT_EQ(matcher.match(), "END");
  }
}

TEST(Stop, HeldTextComesWhenItCannotMatchAnyMore) {
  StopMatcher matcher({"END"});
  EXPECT_EQ(matcher.push("E"), "");
  EXPECT_EQ(matcher.push("N"), "");
  EXPECT_EQ(matcher.push("T"), "ENT");
  EXPECT_EQ(matcher.push("EN"), "");
  EXPECT_EQ(matcher.finish(), "EN");
  EXPECT_FALSE(matcher.stopped());
}

TEST(Stop, OverlapsAreFound) {
  StopMatcher matcher({"aab"});
  EXPECT_EQ(matcher.push("aa"), "");
  EXPECT_EQ(matcher.push("a"), "a") << "two of the three may still begin a match";
  EXPECT_EQ(matcher.push("b"), "");
  EXPECT_TRUE(matcher.stopped());
}

TEST(Stop, TheMatchThatIsCompleteFirstWins) {
  for (const std::vector<std::string>& stops : {std::vector<std::string>{"abc", "b"}, {"b", "abc"}}) {
    StopMatcher whole(stops), pieces(stops);
    EXPECT_EQ(whole.push("xabc"), "xa");
    std::string shown = pieces.push("xa");
    shown += pieces.push("b");
    shown += pieces.push("c");
    EXPECT_EQ(shown, "xa");
  }
  StopMatcher longest({"b", "ab"});
  EXPECT_EQ(longest.push("xab"), "x");
}

TEST(Stop, BytesOfCharactersAreJustBytes) {
  StopMatcher matcher({"\xe2\x82\xac"});  // the euro sign
  EXPECT_EQ(matcher.push("5 \xe2\x82"), "5 ");
  EXPECT_EQ(matcher.push("\xac!"), "");
  EXPECT_TRUE(matcher.stopped());
}

TEST(Stop, AnyCutGivesTheSameText) {
  uint64_t state = 1;
  const auto below = [&](uint64_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % n;
  };
  const auto word = [&](size_t n) {
    std::string s;
    while (s.size() < n) s += static_cast<char>('a' + below(2));
    return s;
  };
  int stopped_count = 0;
  for (int i = 0; i < 20000; ++i) {
    std::vector<std::string> stops;
    for (uint64_t n = below(4); n > 0; --n) stops.push_back(word(below(6)));
    const std::string text = word(below(16));
    bool stopped = false;
    const std::string expected = expected_text(text, stops, &stopped);
    StopMatcher matcher(stops);
    std::string shown;
    for (size_t at = 0; at < text.size();) {
      const size_t n = 1 + below(text.size() - at);
      shown += matcher.push(text.substr(at, n));
      at += n;
      ASSERT_TRUE(expected.starts_with(shown)) << "shown and taken back";
    }
    shown += matcher.finish();
    ASSERT_EQ(shown, expected) << text;
    ASSERT_EQ(matcher.stopped(), stopped);
    stopped_count += stopped;
  }
  EXPECT_GT(stopped_count, 5000);
}

}  // namespace
}  // namespace kvasir
