// The memory that all sessions of a model share: budgets, the pool of blocks, the prefixes that engines keep.
#pragma once

#include <memory>

#include "base/budget.h"
#include "cache/block_pool.h"
#include "cache/share/prefix_tree.h"

namespace kvasir {

class SharedMemory {
 public:
  /// Bytes of ModelOptions::ram and kv_ram; 0: no limit.
  SharedMemory(size_t ram, size_t kv_ram);

  Budget& budget() const { return *budget_; }
  Budget& kv_budget() const { return *kv_budget_; }
  const std::shared_ptr<BlockPool>& pool() const { return pool_; }
  /// The prefixes of all engines that keep some, for as long as one of them lives. The first of them sets the limit.
  std::shared_ptr<PrefixTree> prefixes(size_t bytes);

 private:
  std::shared_ptr<Budget> budget_, kv_budget_;
  std::shared_ptr<BlockPool> pool_;
  Mutex mutex_;
  std::weak_ptr<PrefixTree> prefixes_ KVASIR_GUARDED_BY(mutex_);
};

}  // namespace kvasir
