// The memory that all sessions of a model share: budgets, the pool of blocks, the tree of stored prefixes.
#pragma once

#include <memory>

#include "base/budget.h"
#include "cache/block_pool.h"
#include "cache/share/prefix_tree.h"

namespace kvasir {

class SharedMemory {
 public:
  /// `ram`, `kv_ram`: bytes, as in ModelOptions; 0: no limit.
  SharedMemory(size_t ram, size_t kv_ram);

  const std::shared_ptr<Budget>& shared_budget() const { return budget_; }
  Budget& budget() const { return *budget_; }
  Budget& kv_budget() const { return *kv_budget_; }
  const std::shared_ptr<BlockPool>& pool() const { return pool_; }
  /// The prefix tree, shared by all engines that store prefixes and alive as long as one of them is. The first engine
  /// sets its limit in bytes.
  std::shared_ptr<PrefixTree> prefixes(size_t bytes);

 private:
  std::shared_ptr<Budget> budget_, kv_budget_;
  std::shared_ptr<BlockPool> pool_;
  Mutex mutex_;
  std::weak_ptr<PrefixTree> prefixes_ KVASIR_GUARDED_BY(mutex_);
};

}  // namespace kvasir
