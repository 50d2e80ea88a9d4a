// From feeds to passes: which tokens of which session share a pass, where their rows of logits go, and how a feed that
// fails is rolled back. The forward pass itself is arch/network.h's.
#pragma once

#include <span>
#include <vector>

#include <kvasir/engine.h>

#include "engine/engine_impl.h"

namespace kvasir {

/// Feeds from the moment their tokens belong to their sessions to the last row of logits.
class Feeding {
 public:
  /// Requires: `feeds` passed check(), and outlives this.
  Feeding(Engine::Impl& engine, std::span<const Feed> feeds);

  /// Errors: no tokens, an id out of range, more tokens than fit the context, a session that is fed twice.
  static Result<void> check(const Model& model, std::span<const Feed> feeds);
  /// The tokens that one pass would have to compute for all of `feeds`.
  static size_t tokens_to_compute(std::span<const Feed> feeds);

  /// Runs passes until everything is computed. On error every session is as it was before.
  Result<void> run(PassOutput* out);

 private:
  Result<void> reserve();
  Result<void> run_passes();
  std::vector<BatchItem> next_items();
  /// The first token whose logits feed i wants.
  int wanted_from(size_t i) const;
  size_t wanted_rows(size_t i) const;
  void fail_feed(size_t i, Error error);
  Result<void> give_rows(PassOutput* out);
  /// Moves the rows of each feed together, in a second buffer.
  Result<void> sort_rows();

  Engine::Impl& engine_;
  std::span<const Feed> feeds_;
  std::vector<int> before_;                   // tokens of each session before the feed's own
  std::vector<size_t> owners_;                // the feed of each item of the pass at hand
  std::vector<size_t> row_owners_;            // the feed of each row of logits computed so far
  std::vector<size_t> hidden_at_;             // where the states of each feed begin in the engine's rows
  std::vector<std::optional<Error>> errors_;  // [feeds]
};

}  // namespace kvasir
