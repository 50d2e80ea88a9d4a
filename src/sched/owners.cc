// Accounts of the owners.
#include "sched/owners.h"

#include <algorithm>
#include <iterator>

namespace kvasir::sched {

void Owners::arrive(const std::string& owner, double weight) {
  Account& account = accounts_[owner];
  account.weight = weight;
  if (account.sequences++ > 0) return;
  const Account* least = nullptr;
  for (const auto& [name, other] : accounts_)
    if (&other != &account && other.sequences > 0 && (least == nullptr || other.counter < least->counter))
      least = &other;
  if (least != nullptr) account.counter = std::max(account.counter, least->counter);
}

// Drops the account of an absent owner once no present owner has a lower counter.
void Owners::leave(const std::string& owner) {
  const auto gone = accounts_.find(owner);
  if (--gone->second.sequences > 0) return;
  for (auto at = accounts_.begin(); at != accounts_.end();) {
    const bool ahead = std::any_of(accounts_.begin(), accounts_.end(), [&](const auto& other) {
      return other.second.sequences > 0 && other.second.counter < at->second.counter;
    });
    at = at->second.sequences == 0 && !ahead ? accounts_.erase(at) : std::next(at);
  }
}

void Owners::charge(const std::string& owner, double tokens) {
  Account& account = accounts_[owner];
  account.counter += tokens / account.weight;
}

double Owners::counter(const std::string& owner) const {
  const auto account = accounts_.find(owner);
  return account == accounts_.end() ? 0 : account->second.counter;
}

}  // namespace kvasir::sched
