// Sorting by fairness, and the limit on bypassing.
#include "sched/order.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace kvasir::sched {

std::vector<size_t> admission_order(std::span<const Waiting> waiting) {
  std::vector<size_t> order(waiting.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const Waiting &x = waiting[a], &y = waiting[b];
    return std::tie(x.counter, x.owner, y.priority, x.arrival) < std::tie(y.counter, y.owner, x.priority, y.arrival);
  });
  return order;
}

size_t first_of_owner(std::span<const int> reusable, int bypassed) {
  if (bypassed >= kMostBypasses) return 0;
  return static_cast<size_t>(std::max_element(reusable.begin(), reusable.end()) - reusable.begin());
}

bool follows(std::span<const int> text, int reusable, std::span<const int> leader) {
  const auto shared = std::mismatch(text.begin(), text.end(), leader.begin(), leader.end()).first - text.begin();
  return shared >= reusable + kLeastShared;
}

}  // namespace kvasir::sched
