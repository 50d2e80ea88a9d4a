// A pool of memory blocks that the sequences of one model share: a free list, reference counts, and budgets that are
// asked before memory is allocated. Each layout decides what its blocks contain.
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
#include "base/spare_memory.h"

namespace kvasir {

class BlockPool;

class Block {
 public:
  std::byte* data() const { return memory_.data(); }
  size_t bytes() const { return memory_.bytes(); }

 private:
  friend class BlockPool;
  friend class BlockPtr;
  std::atomic<int> holders_{0};      // number of BlockPtrs to it
  std::shared_ptr<BlockPool> pool_;  // where the last BlockPtr returns it; null while it waits
  Buffer memory_;
  std::vector<BudgetSharePtr> shares_;
  std::unique_ptr<Block> next_;  // in the free list
};

/// A reference to a block that one or several sequences hold; the last one returns it to the pool. A shared block is
/// read-only.
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
  /// Whether this is the only holder. If so, everything the others did with the block happened before this returns.
  /// Requires: a block.
  bool unique() const { return holders() == 1; }
  int holders() const { return block_->holders_.load(std::memory_order_acquire); }

 private:
  friend class BlockPool;
  explicit BlockPtr(Block* block) : block_(block) { block_->holders_.store(1, std::memory_order_relaxed); }
  Block* block_ = nullptr;
};

/// Thread-safe. Blocks may differ in size, since sessions may differ in their KV types.
class BlockPool : public std::enable_shared_from_this<BlockPool> {
 public:
  /// Every block is reserved in all of `budgets` before it is allocated. `reuse`: a returned block waits for the next
  /// take(); otherwise it is freed at once.
  static std::shared_ptr<BlockPool> create(std::vector<std::shared_ptr<Budget>> budgets = {}, bool reuse = true) {
    return std::shared_ptr<BlockPool>(new BlockPool(std::move(budgets), reuse));
  }

  /// Takes a block of `bytes` bytes, contents unspecified. If a budget has too little left and room() is enough, frees
  /// memory with shrink() and retries. Errors: a budget has too little left, no memory.
  Result<BlockPtr> take(size_t bytes);
  /// Returns memory to the budgets, or to `short_of` them: all waiting blocks, or if none wait, what the first holder
  /// with spare memory frees. Returns false if there was nothing to free.
  bool shrink(size_t bytes, const Budget* short_of = nullptr);
  /// Bytes of one of the budgets that repeated shrink() can free.
  size_t spare_bytes(const Budget& of) const;
  /// Bytes that take() can still provide: the smallest of any budget's rest and its spare_bytes(). SIZE_MAX if no
  /// budget has a limit.
  size_t room() const;
  /// Registers a holder that shrink() asks for memory as long as it lives, after those registered before. Its memory
  /// counts in all budgets, or in `only` one of them. The pool's lock is not held when it is asked.
  void add_holder(std::weak_ptr<SpareMemory> holder, const Budget* only = nullptr);
  /// Bytes in blocks that sequences hold.
  size_t used_bytes() const;
  /// Bytes in blocks that wait for the next take().
  size_t waiting_bytes() const;

 private:
  BlockPool(std::vector<std::shared_ptr<Budget>> budgets, bool reuse) : budgets_(std::move(budgets)), reuse_(reuse) {}
  Result<BlockPtr> try_take(size_t bytes);
  Result<std::unique_ptr<Block>> waiting_or_new(size_t bytes) KVASIR_REQUIRES(mutex_);
  Result<std::unique_ptr<Block>> make(size_t bytes) const;
  friend class BlockPtr;
  struct Holder {
    std::weak_ptr<SpareMemory> memory;
    const Budget* only;  // null: all budgets
  };
  void give_back(std::unique_ptr<Block> block) noexcept;
  std::vector<std::shared_ptr<SpareMemory>> living_holders(const Budget* of) const;
  const Budget* short_of(size_t bytes) const;

  const std::vector<std::shared_ptr<Budget>> budgets_;
  const bool reuse_;
  mutable Mutex mutex_;
  std::map<size_t, std::unique_ptr<Block>> waiting_ KVASIR_GUARDED_BY(mutex_);  // free lists by block size
  std::vector<Holder> holders_ KVASIR_GUARDED_BY(mutex_);
  size_t used_bytes_ KVASIR_GUARDED_BY(mutex_) = 0;
  size_t waiting_bytes_ KVASIR_GUARDED_BY(mutex_) = 0;
};

}  // namespace kvasir
