// Blocks of memory that sequences of one model take and give back: a free list, reference counts, and a budget that is
// asked before memory is taken. What is in a block is its layout's own.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include <kvasir/result.h>

#include "base/budget.h"
#include "base/buffer.h"
#include "base/mutex.h"

namespace kvasir {

class BlockPool;

class Block {
 public:
  std::byte* data() const { return memory_.data(); }
  size_t bytes() const { return memory_.bytes(); }

 private:
  friend class BlockPool;
  friend class BlockPtr;
  std::atomic<int> holders_{0};      // BlockPtrs to it
  std::shared_ptr<BlockPool> pool_;  // to give it back to, while it is held
  Buffer memory_;
  std::vector<BudgetSharePtr> shares_;
  std::unique_ptr<Block> next_;  // of the free list
};

/// A block held by one sequence or shared by several: the last one gives it back. Read-only while it is shared.
class BlockPtr {
 public:
  BlockPtr() = default;
  BlockPtr(const BlockPtr& other) : block_(other.block_) {
    if (block_ != nullptr) block_->holders_.fetch_add(1, std::memory_order_relaxed);
  }
  BlockPtr(BlockPtr&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  BlockPtr& operator=(BlockPtr other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~BlockPtr() { reset(); }
  void reset() noexcept;

  Block* get() const { return block_; }
  Block* operator->() const { return block_; }
  bool operator==(std::nullptr_t) const { return block_ == nullptr; }
  /// Whether nobody else holds it. If so, whatever others did with it happened before this returns. Requires: a block.
  bool unique() const { return holders() == 1; }
  int holders() const { return block_->holders_.load(std::memory_order_acquire); }

 private:
  friend class BlockPool;
  explicit BlockPtr(Block* block) : block_(block) { block_->holders_.store(1, std::memory_order_relaxed); }
  Block* block_ = nullptr;
};

/// Somebody with blocks that are not needed, but might be.
class BlockHolder {
 public:
  virtual ~BlockHolder() = default;
  /// Frees blocks that nobody else holds, of `bytes` or what there is; false: there are none. Called without the pool's
  /// lock.
  virtual bool give_back(size_t bytes) = 0;
  /// Bytes that give_back() can free: blocks that nobody else holds.
  virtual size_t spare_bytes() const = 0;
};

/// Thread-safe. Blocks of several sizes may come from one pool, since sessions may differ in their KV types.
class BlockPool : public std::enable_shared_from_this<BlockPool> {
 public:
  /// Every block is promised by all of `budgets` first. `keep`: what is given back waits for the next taker; else it
  /// goes back to the system.
  static std::shared_ptr<BlockPool> create(std::vector<std::shared_ptr<Budget>> budgets = {}, bool keep = true) {
    return std::shared_ptr<BlockPool>(new BlockPool(std::move(budgets), keep));
  }

  /// A block of so many bytes, whatever was in it. Before a budget refuses, holders are asked for what is missing,
  /// where they have that much. Errors: a budget has less left, no memory.
  Result<BlockPtr> take(size_t bytes);
  /// Gives memory back to the budgets: all blocks that wait; or else `bytes` of what a holder has, or less. False:
  /// there was none.
  bool shrink(size_t bytes);
  /// Bytes that shrink() can free in all.
  size_t spare_bytes() const;
  /// Bytes that can be taken: what every budget has left, and spare_bytes(). SIZE_MAX where no budget has a limit.
  size_t room() const;
  /// Asked for blocks as long as it lives.
  void add_holder(std::weak_ptr<BlockHolder> holder);
  /// Bytes of the blocks that sequences hold; that wait.
  size_t used_bytes() const;
  size_t waiting_bytes() const;

 private:
  BlockPool(std::vector<std::shared_ptr<Budget>> budgets, bool keep) : budgets_(std::move(budgets)), keep_(keep) {}
  Result<BlockPtr> try_take(size_t bytes);
  Result<std::unique_ptr<Block>> waiting_or_new(size_t bytes) KVASIR_REQUIRES(mutex_);
  Result<std::unique_ptr<Block>> make(size_t bytes) const;
  friend class BlockPtr;
  void give_back(std::unique_ptr<Block> block) noexcept;
  std::vector<std::shared_ptr<BlockHolder>> living_holders() const;

  const std::vector<std::shared_ptr<Budget>> budgets_;
  const bool keep_;
  mutable Mutex mutex_;
  std::map<size_t, std::unique_ptr<Block>> waiting_ KVASIR_GUARDED_BY(mutex_);  // by size, each a list
  std::vector<std::weak_ptr<BlockHolder>> holders_ KVASIR_GUARDED_BY(mutex_);
  size_t used_bytes_ KVASIR_GUARDED_BY(mutex_) = 0;
  size_t waiting_bytes_ KVASIR_GUARDED_BY(mutex_) = 0;
};

}  // namespace kvasir
