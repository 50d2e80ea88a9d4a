// The engine's internals: threads, scratch memory, the results of its last pass. feeding.h turns feeds into passes.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include <kvasir/engine.h>

#include "arch/network.h"
#include "base/budget.h"
#include "base/buffer.h"
#include "cache/share/prefix_tree.h"

namespace kvasir {

/// A buffer of floats that is reused from call to call and never shrinks.
class RowBuffer {
 public:
  /// Makes room for `floats`. Growing loses the contents. Errors: no memory.
  Result<void> reserve(size_t floats) {
    if (floats * sizeof(float) <= buffer_.bytes()) return {};
    buffer_ = {};  // frees first: old and new never exist together
    KVASIR_TRY(buffer_, Buffer::allocate(floats * sizeof(float), Owner::activations));
    return {};
  }
  float* data() const { return reinterpret_cast<float*>(buffer_.data()); }

 private:
  Buffer buffer_;
};

/// The salt in the name of a space of the prefix tree.
inline std::string_view salt_of(std::string_view space) { return space.substr(space.find('\n') + 1); }

struct Engine::Impl {
  std::shared_ptr<const Model> model;
  BudgetSharePtr share;  // reservation for activations
  const Network* network = nullptr;
  std::unique_ptr<Compute> compute;
  Workspace workspace;
  RowBuffer logits, hidden;              // results of the last pass or step
  std::shared_ptr<PrefixTree> prefixes;  // null without prefix_ram
  int chunk = 0;

  /// The layout and the shape of a session's cache. Errors: unknown names, an impossible context or window.
  Result<std::pair<const LayoutInfo*, CacheShape>> shape_of(const SessionOptions& options) const;
  /// Chooses the number of tokens a pass (chunk) and reserves memory for its activations.
  Result<void> plan_memory(Budget& budget, int prefill_chunk);
};

}  // namespace kvasir
