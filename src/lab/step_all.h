// Steps in which every feed must succeed: a measurement cannot use only some of its sequences.
#pragma once

#include <kvasir/engine.h>

namespace kvasir {

/// Returns the first error of a feed.
inline Result<void> check_feeds(const PassOutput& out) {
  for (const FeedOutput& feed : out)
    if (feed.error) return tl::unexpected(*feed.error);
  return {};
}

/// As Engine::step(); also returns the first error of a feed.
inline Result<void> step_all(Engine& engine, std::span<const Feed> feeds, PassOutput* out) {
  KVASIR_CHECK(engine.step(feeds, out));
  return check_feeds(*out);
}

/// As Engine::decode_step(); also returns the first error of a feed.
inline Result<void> decode_all(Engine& engine, std::span<Session* const> sessions, std::span<const int> tokens,
                               PassOutput* out) {
  KVASIR_CHECK(engine.decode_step(sessions, tokens, out));
  return check_feeds(*out);
}

}  // namespace kvasir
