// Sorting, and letting one pass by.
#include "sched/order.h"

#include <algorithm>
#include <iterator>
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
  for (auto first = order.begin(); first != order.end();) {
    const auto end =
        std::find_if(first, order.end(), [&](size_t i) { return waiting[i].owner != waiting[*first].owner; });
    const auto near = first + std::min<std::ptrdiff_t>(kBypassDepth, end - first);
    const auto best =
        std::max_element(first, near, [&](size_t a, size_t b) { return waiting[a].reusable < waiting[b].reusable; });
    if (best != first && waiting[*first].bypassed < kMostBypasses) std::rotate(first, best, best + 1);
    first = end;
  }
  return order;
}

bool follows(std::span<const int> text, int reusable, std::span<const int> leader) {
  const auto shared = std::mismatch(text.begin(), text.end(), leader.begin(), leader.end()).first - text.begin();
  return shared >= reusable + kLeastShared;
}

}  // namespace kvasir::sched
