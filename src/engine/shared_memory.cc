// Creating what the sessions of a model share.
#include "engine/shared_memory.h"

namespace kvasir {

SharedMemory::SharedMemory(size_t ram, size_t kv_ram)
    : budget_(Budget::create(ram)),
      kv_budget_(Budget::create(kv_ram, "ModelOptions::kv_ram")),
      pool_(BlockPool::create({budget_, kv_budget_})) {}

std::shared_ptr<PrefixTree> SharedMemory::prefixes(size_t bytes) {
  const MutexLock lock(mutex_);
  std::shared_ptr<PrefixTree> tree = prefixes_.lock();
  if (tree == nullptr) {
    tree = std::make_shared<PrefixTree>(bytes);
    pool_->add_holder(tree);
    prefixes_ = tree;
  }
  return tree;
}

}  // namespace kvasir
