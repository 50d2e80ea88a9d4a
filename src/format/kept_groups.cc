// The order in which groups are kept, and their reservations.
#include "format/kept_groups.h"

#include <utility>

namespace kvasir {
namespace {

// Groups of at least this many bytes lie on huge pages, which cost at most an eighth more.
constexpr size_t kHugeFrom = 8 * kHugePage;

size_t in_memory(size_t bytes) {
  return bytes < kHugeFrom ? whole_pages(bytes) : (bytes + kHugePage - 1) / kHugePage * kHugePage;
}

// 0..n-1 in an order of which every beginning is spread evenly: multiples of the golden ratio, modulo n
// (Knuth, The Art of Computer Programming, volume 3, section 6.4).
std::vector<size_t> spread_order(size_t n) {
  constexpr double kGolden = 0.6180339887498949;
  std::vector<size_t> order;
  std::vector<bool> taken(n);
  double at = 0;
  while (order.size() < n) {
    auto next = static_cast<size_t>(at * static_cast<double>(n));
    while (taken[next]) next = (next + 1) % n;
    taken[next] = true;
    order.push_back(next);
    at += kGolden;
    if (at >= 1) at -= 1;
  }
  return order;
}

}  // namespace

KeptGroups::KeptGroups(std::vector<size_t> bytes, std::shared_ptr<Budget> budget)
    : budget_(std::move(budget)), order_(spread_order(bytes.size())), groups_(bytes.size()) {
  for (size_t i = 0; i < bytes.size(); ++i) groups_[i].bytes = in_memory(bytes[i]);
}

void KeptGroups::plan() {
  const MutexLock lock(mutex_);
  if (budget_ == nullptr || !budget_->limited()) return;
  size_t room = budget_->left();
  for (const Group& group : groups_) room += group.share != nullptr ? group.bytes : 0;
  for (const size_t i : order_) {
    Group& group = groups_[i];
    group.wanted = group.bytes <= room;
    if (group.wanted) room -= group.bytes;
    if (!group.wanted && may_go(group)) free(group);
  }
  for (const size_t i : order_) {
    Group& group = groups_[i];
    if (!group.wanted || group.share != nullptr) continue;
    if (auto share = budget_->take(group.bytes, "weights", "kept weights need", "")) group.share = std::move(*share);
  }
}

KeptGroups::Use KeptGroups::use(int group) {
  const MutexLock lock(mutex_);
  Group& wanted = groups_[static_cast<size_t>(group)];
  if (wanted.share == nullptr) return {};
  const bool fresh = wanted.memory.data() == nullptr;
  if (fresh) {
    auto memory = Buffer::allocate(wanted.bytes, Owner::weights, wanted.bytes >= kHugeFrom);
    if (!memory) return {};
    wanted.memory = std::move(*memory);
  }
  wanted.in_use = true;
  return {wanted.memory.data(), fresh};
}

void KeptGroups::done(int group) {
  const MutexLock lock(mutex_);
  Group& done = groups_[static_cast<size_t>(group)];
  done.in_use = false;
  if (!done.wanted) free(done);
}

bool KeptGroups::has(int group) const {
  const MutexLock lock(mutex_);
  return groups_[static_cast<size_t>(group)].memory.data() != nullptr;
}

void KeptGroups::free(Group& group) {
  group.memory = Buffer();
  group.share.reset();
}

size_t KeptGroups::bytes() const {
  const MutexLock lock(mutex_);
  size_t bytes = 0;
  for (const Group& group : groups_) bytes += group.memory.bytes();
  return bytes;
}

bool KeptGroups::give_back(size_t bytes) {
  const MutexLock lock(mutex_);
  size_t freed = 0;
  for (auto i = order_.rbegin(); i != order_.rend() && freed < bytes; ++i) {
    if (!may_go(groups_[*i])) continue;
    freed += groups_[*i].bytes;
    free(groups_[*i]);
  }
  return freed > 0;
}

size_t KeptGroups::spare_bytes() const {
  const MutexLock lock(mutex_);
  size_t bytes = 0;
  for (const Group& group : groups_)
    if (may_go(group)) bytes += group.bytes;
  return bytes;
}

}  // namespace kvasir
