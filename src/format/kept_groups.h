// Weight groups that stay in memory from pass to pass, as long as a budget has room for them. Knows their sizes only;
// StreamedWeights fills them.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "base/budget.h"
#include "base/buffer.h"
#include "base/mutex.h"
#include "base/spare_memory.h"

namespace kvasir {

/// One thread calls the methods of a pass; those of SpareMemory are for every thread. Passes use the groups in turn, so
/// any subset serves as well as another; the kept ones lie far apart, so that one computes while a read is in progress.
class KeptGroups final : public SpareMemory {
 public:
  /// bytes[group]. Keeps nothing without a budget, or in one without a limit.
  KeptGroups(std::vector<size_t> bytes, std::shared_ptr<Budget> budget);

  /// Decides at the start of a pass which groups have room, and reserves it.
  void plan();
  struct Use {
    std::byte* memory = nullptr;  ///< null: the group is not kept
    bool fresh = false;           ///< the memory is new: the group must be read
  };
  /// Memory of a kept group, which is in use until done().
  Use use(int group);
  /// Ends the use, if there is one.
  void done(int group);
  /// Whether the group has memory now.
  bool has(int group) const;

  size_t bytes() const;
  bool give_back(size_t bytes) override;
  size_t spare_bytes() const override;

 private:
  struct Group {
    size_t bytes = 0;
    bool wanted = false;
    BudgetSharePtr share;  // null: no room
    Buffer memory;         // allocated when it is first used
    bool in_use = false;
  };
  static bool may_go(const Group& group) { return group.share != nullptr && !group.in_use; }
  static void free(Group& group);

  std::shared_ptr<Budget> budget_;
  std::vector<size_t> order_;  // groups, the first to be kept first
  mutable Mutex mutex_;
  std::vector<Group> groups_ KVASIR_GUARDED_BY(mutex_);
};

}  // namespace kvasir
