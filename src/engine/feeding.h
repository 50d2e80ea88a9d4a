// From feeds to passes: which tokens of which session share a pass, where their logits go, and how a failed feed is
// rolled back. arch/network.h runs the forward pass itself.
#pragma once

#include <span>
#include <vector>

#include <kvasir/engine.h>

#include "engine/engine_impl.h"

namespace kvasir {

/// The feeds of one call, from appending their tokens to the sessions until the last row of logits.
class Feeding {
 public:
  /// Appends the feeds' tokens to their sessions. Requires: `feeds` passed check(), and outlives this.
  Feeding(Engine::Impl& engine, std::span<const Feed> feeds);

  /// Errors: no tokens, an id out of range, more tokens than fit the context, a session fed twice.
  static Result<void> check(const Model& model, std::span<const Feed> feeds);
  /// Number of tokens that one pass for all of `feeds` would compute.
  static size_t tokens_to_compute(std::span<const Feed> feeds);

  /// Runs passes until everything is computed. On error, every session is as it was before.
  Result<void> run(PassOutput* out);

 private:
  Result<void> reserve();
  Result<void> run_passes();
  std::vector<BatchItem> next_items();
  /// Position of the first token whose logits feed i wants.
  int wanted_from(size_t i) const;
  size_t wanted_rows(size_t i) const;
  void fail_feed(size_t i, Error error);
  Result<void> give_rows(PassOutput* out);
  /// Makes the rows of each feed contiguous, in a second buffer.
  Result<void> sort_rows();

  Engine::Impl& engine_;
  std::span<const Feed> feeds_;
  std::vector<int> before_;                   // length of each session without its feed
  std::vector<size_t> owners_;                // the feed of each item of the current pass
  std::vector<size_t> row_owners_;            // the feed of each row of logits computed so far
  std::vector<size_t> hidden_at_;             // where the hidden states of each feed begin in the engine's buffer
  std::vector<std::optional<Error>> errors_;  // [feeds]
};

}  // namespace kvasir
