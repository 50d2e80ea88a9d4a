// The engine's insides: threads, scratch memory and the loop of passes behind a step.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include <kvasir/engine.h>

#include "arch/network.h"
#include "base/budget.h"
#include "cache/share/prefix_tree.h"

namespace kvasir {

struct EngineImpl {
  BudgetSharePtr share;  // of activations
  const Network* network = nullptr;
  std::unique_ptr<Compute> compute;
  Workspace workspace;
  std::shared_ptr<PrefixTree> prefixes;  // null without prefix_ram
  int chunk = 0;

  /// Chooses the chunk and takes its memory from the budget.
  Result<void> plan_memory(Budget& budget, int prefill_chunk);
  /// Feeds what the sessions' caches do not cover, chunk by chunk. `before[i]` is where feed i's own tokens begin.
  Result<void> run_passes(std::span<const Feed> feeds, std::span<const int> before, StepOutput* out);

 private:
  Result<void> reserve(std::span<const Feed> feeds);
  /// The next chunk of every session that lacks positions, and which feed each belongs to.
  std::vector<BatchItem> next_items(std::span<const Feed> feeds, std::span<const int> before,
                                    std::vector<size_t>* owners);
};

}  // namespace kvasir
