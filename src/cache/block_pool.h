// Blocks of memory that sequences of one model take and give back: a free list, reference counts, and a budget that is
// asked before memory is taken. What is in a block is its layout's own.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include <kvasir/result.h>

#include "base/budget.h"
#include "base/buffer.h"

namespace kvasir {

class BlockPool;

/// Held by one sequence or shared by several: the last one gives it back. Read-only while it is shared.
class Block {
 public:
  std::byte* data() const { return memory_.data(); }
  size_t bytes() const { return memory_.bytes(); }

 private:
  friend class BlockPool;
  Buffer memory_;
  std::vector<BudgetSharePtr> shares_;
  std::unique_ptr<Block> next_;  // of the free list
};
using BlockPtr = std::shared_ptr<Block>;

/// Somebody with blocks that are not needed, but might be.
class BlockHolder {
 public:
  virtual ~BlockHolder() = default;
  /// Lets go of some; false: there are none. Called without the pool's lock.
  virtual bool give_back() = 0;
  /// Bytes of the blocks that it has; fewer may be free, where others hold them too.
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

  /// A block of so many bytes, whatever was in it. Before a budget refuses, all is given up that shrink() can.
  /// Errors: a budget has less left, no memory.
  Result<BlockPtr> take(size_t bytes);
  /// Gives memory back to the budgets: blocks that wait, of any size; or else what a holder has. False: there was none.
  bool shrink();
  /// Bytes that shrink() might give in all.
  size_t spare_bytes() const;
  /// Asked for blocks as long as it lives.
  void add_holder(std::weak_ptr<BlockHolder> holder);
  /// Bytes of the blocks that sequences hold; that wait.
  size_t used_bytes() const;
  size_t waiting_bytes() const;

 private:
  BlockPool(std::vector<std::shared_ptr<Budget>> budgets, bool keep) : budgets_(std::move(budgets)), keep_(keep) {}
  Result<BlockPtr> try_take(size_t bytes);
  Result<std::unique_ptr<Block>> waiting_or_new(size_t bytes);
  Result<std::unique_ptr<Block>> make(size_t bytes) const;
  void give_back(std::unique_ptr<Block> block) noexcept;
  std::vector<std::shared_ptr<BlockHolder>> living_holders() const;

  const std::vector<std::shared_ptr<Budget>> budgets_;
  const bool keep_;
  mutable std::mutex mutex_;
  std::map<size_t, std::unique_ptr<Block>> waiting_;  // by size, each a list
  std::vector<std::weak_ptr<BlockHolder>> holders_;
  size_t used_bytes_ = 0, waiting_bytes_ = 0;
};

}  // namespace kvasir
