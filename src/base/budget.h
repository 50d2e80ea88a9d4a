// A limit in bytes for a whole run, and who has reserved how much of it. It only counts and refuses; it allocates
// nothing.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include <kvasir/result.h>

#include "base/mutex.h"

namespace kvasir {

/// Memory of a process that is not counted one by one: code and libraries, stacks, small objects on the heap.
inline constexpr size_t kProcessBytes = size_t{16} << 20;

class Budget;

/// A reservation; the destructor returns its bytes to the budget.
class BudgetShare {
 public:
  ~BudgetShare();
  BudgetShare(const BudgetShare&) = delete;
  BudgetShare& operator=(const BudgetShare&) = delete;

 private:
  friend class Budget;
  BudgetShare(std::shared_ptr<Budget> budget, std::string owner, size_t bytes)
      : budget_(std::move(budget)), owner_(std::move(owner)), bytes_(bytes) {}
  std::shared_ptr<Budget> budget_;
  std::string owner_;
  size_t bytes_;
};
using BudgetSharePtr = std::unique_ptr<BudgetShare>;

/// Thread-safe.
class Budget : public std::enable_shared_from_this<Budget> {
 public:
  /// `bytes` is the limit; 0: no limit, every reservation succeeds. `parameter` names the option that sets the limit;
  /// errors have it as `where`.
  static std::shared_ptr<Budget> create(size_t bytes, std::string parameter = "ModelOptions::ram") {
    return std::shared_ptr<Budget>(new Budget(bytes, std::move(parameter)));
  }

  /// The limit in bytes; 0: no limit.
  size_t bytes() const { return bytes_; }
  bool limited() const { return bytes_ != 0; }
  size_t left() const;

  /// Reserves `bytes`. Errors: fewer bytes are left (names what was asked for, what is left and who has the rest).
  /// `owner` is a word for the user, such as "weights"; `what` begins the error text: "a context of 512 positions
  /// needs".
  Result<BudgetSharePtr> take(size_t bytes, const std::string& owner, const std::string& what, const std::string& hint);

 private:
  friend class BudgetShare;
  Budget(size_t bytes, std::string parameter) : bytes_(bytes), parameter_(std::move(parameter)) {}
  size_t taken() const KVASIR_REQUIRES(mutex_);

  const size_t bytes_;
  const std::string parameter_;
  mutable Mutex mutex_;
  std::map<std::string, size_t> taken_ KVASIR_GUARDED_BY(mutex_);  // by owner
};

}  // namespace kvasir
