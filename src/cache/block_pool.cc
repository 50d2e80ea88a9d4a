// Taking and returning blocks.
#include "cache/block_pool.h"

#include <algorithm>
#include <utility>

namespace kvasir {

void BlockPtr::reset() noexcept {
  Block* const block = std::exchange(block_, nullptr);
  if (block == nullptr || block->holders_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const std::shared_ptr<BlockPool> pool = std::move(block->pool_);
  pool->give_back(std::unique_ptr<Block>(block));
}

Result<BlockPtr> BlockPool::take(size_t bytes) {
  auto taken = try_take(bytes);
  while (!taken && room() >= bytes && shrink(bytes, short_of(bytes))) taken = try_take(bytes);
  return taken;
}

// A budget with fewer than `bytes` left; null: none.
const Budget* BlockPool::short_of(size_t bytes) const {
  const auto found = std::ranges::find_if(budgets_, [&](const auto& budget) { return budget->left() < bytes; });
  return found != budgets_.end() ? found->get() : nullptr;
}

bool BlockPool::shrink(size_t bytes, const Budget* short_of) {
  {
    const MutexLock lock(mutex_);
    for (auto& [size, first] : waiting_)
      while (first != nullptr) first = std::move(first->next_);
    if (std::exchange(waiting_bytes_, 0) > 0) return true;
  }
  const auto holders = living_holders(short_of);
  return std::any_of(holders.begin(), holders.end(), [&](const auto& holder) { return holder->give_back(bytes); });
}

size_t BlockPool::room() const {
  size_t room = SIZE_MAX;
  for (const auto& budget : budgets_)
    if (budget->limited()) room = std::min(room, budget->left() + spare_bytes(*budget));
  return room;
}

size_t BlockPool::spare_bytes(const Budget& of) const {
  size_t bytes = waiting_bytes();
  for (const auto& holder : living_holders(&of)) bytes += holder->spare_bytes();
  return bytes;
}

// The holders whose memory counts in this budget; null: all holders.
std::vector<std::shared_ptr<SpareMemory>> BlockPool::living_holders(const Budget* of) const {
  const MutexLock lock(mutex_);
  std::vector<std::shared_ptr<SpareMemory>> living;
  for (const Holder& holder : holders_)
    if (auto alive = holder.memory.lock(); alive && (of == nullptr || holder.only == nullptr || holder.only == of))
      living.push_back(std::move(alive));
  return living;
}

void BlockPool::add_holder(std::weak_ptr<SpareMemory> holder, const Budget* only) {
  const MutexLock lock(mutex_);
  std::erase_if(holders_, [](const Holder& gone) { return gone.memory.expired(); });
  holders_.push_back({std::move(holder), only});
}

Result<BlockPtr> BlockPool::try_take(size_t bytes) {
  const MutexLock lock(mutex_);
  KVASIR_TRY(auto block, waiting_or_new(bytes));
  used_bytes_ += bytes;
  block->pool_ = shared_from_this();
  return BlockPtr(block.release());
}

Result<std::unique_ptr<Block>> BlockPool::waiting_or_new(size_t bytes) {
  if (auto& first = waiting_[bytes]; first != nullptr) {
    std::unique_ptr<Block> block = std::move(first);
    first = std::move(block->next_);
    waiting_bytes_ -= bytes;
    return block;
  }
  return make(bytes);
}

Result<std::unique_ptr<Block>> BlockPool::make(size_t bytes) const {
  auto block = std::make_unique<Block>();
  for (const auto& budget : budgets_) {
    KVASIR_TRY(auto share,
               budget->take(bytes, "KV blocks", "the next block of positions needs",
                            "fewer or shorter sequences, or a narrower SessionOptions::kv_type_k and kv_type_v"));
    block->shares_.push_back(std::move(share));
  }
  KVASIR_TRY(block->memory_, Buffer::allocate(bytes, Owner::kv));
  return block;
}

void BlockPool::give_back(std::unique_ptr<Block> block) noexcept {
  const MutexLock lock(mutex_);
  used_bytes_ -= block->bytes();
  if (!reuse_) return;
  waiting_bytes_ += block->bytes();
  auto& first = waiting_.find(block->bytes())->second;  // the entry exists since take()
  block->next_ = std::move(first);
  first = std::move(block);
}

size_t BlockPool::used_bytes() const {
  const MutexLock lock(mutex_);
  return used_bytes_;
}

size_t BlockPool::waiting_bytes() const {
  const MutexLock lock(mutex_);
  return waiting_bytes_;
}

}  // namespace kvasir
