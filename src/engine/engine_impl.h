// The engine's insides: threads, scratch memory, the rows of its last pass. How feeds become passes is feeding.h's.
#pragma once

#include <memory>
#include <utility>

#include <kvasir/engine.h>

#include "arch/network.h"
#include "base/budget.h"
#include "base/buffer.h"
#include "cache/share/prefix_tree.h"

namespace kvasir {

/// Floats that are kept from call to call, and never shrink.
class RowBuffer {
 public:
  /// Contents are lost where it grows. Errors: no memory.
  Result<void> reserve(size_t floats) {
    if (floats * sizeof(float) <= buffer_.bytes()) return {};
    buffer_ = {};  // first, so that the two are never there together
    KVASIR_TRY(buffer_, Buffer::allocate(floats * sizeof(float), Owner::activations));
    return {};
  }
  float* data() const { return reinterpret_cast<float*>(buffer_.data()); }

 private:
  Buffer buffer_;
};

struct Engine::Impl {
  std::shared_ptr<const Model> model;
  BudgetSharePtr share;  // of activations
  const Network* network = nullptr;
  std::unique_ptr<Compute> compute;
  Workspace workspace;
  RowBuffer logits, hidden;              // what the last pass or step gave
  std::shared_ptr<PrefixTree> prefixes;  // null without prefix_ram
  int chunk = 0;

  /// The layout and the shape of a session's cache. Errors: unknown names, a context or window that cannot be.
  Result<std::pair<const LayoutInfo*, CacheShape>> shape_of(const SessionOptions& options) const;
  /// Chooses the chunk and takes its memory from the budget.
  Result<void> plan_memory(Budget& budget, int prefill_chunk);
};

}  // namespace kvasir
