// Adds up and compares reservations.
#include "base/budget.h"

#include <limits>
#include <numeric>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kvasir {

BudgetShare::~BudgetShare() {
  const MutexLock lock(budget_->mutex_);
  budget_->taken_[owner_] -= bytes_;
}

size_t Budget::taken() const {
  return std::accumulate(taken_.begin(), taken_.end(), size_t{0},
                         [](size_t sum, const auto& owner) { return sum + owner.second; });
}

size_t Budget::left() const {
  if (!limited()) return std::numeric_limits<size_t>::max();
  const MutexLock lock(mutex_);
  return bytes_ - taken();
}

Result<BudgetSharePtr> Budget::take(size_t bytes, const std::string& owner, const std::string& what,
                                    const std::string& hint) {
  const MutexLock lock(mutex_);
  const size_t left = limited() ? bytes_ - taken() : bytes;
  if (bytes > left) {
    std::vector<std::string> others;
    for (const auto& [name, held] : taken_)
      if (held > 0) others.push_back(fmt::format("{} {:.1f} MB", name, static_cast<double>(held) / 1e6));
    return fail(Error::no_room,
                fmt::format("{} {} B, {} B of the {} B for this run are left ({})", what, bytes, left, bytes_,
                            others.empty() ? "nothing is reserved yet" : fmt::format("{}", fmt::join(others, ", "))),
                parameter_, hint);
  }
  taken_[owner] += bytes;
  return BudgetSharePtr(new BudgetShare(shared_from_this(), owner, bytes));
}

}  // namespace kvasir
