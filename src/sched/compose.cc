// Dividing a pass among sequences.
#include "sched/compose.h"

#include <algorithm>
#include <tuple>

namespace kvasir::sched {

std::vector<int> compose(std::span<const Need> needs, int room) {
  std::vector<int> tokens(needs.size());
  std::vector<size_t> prefills;  // oldest first
  for (size_t i = 0; i < needs.size(); ++i)
    if (needs[i].tokens > 1)
      prefills.push_back(i);
    else
      tokens[i] = needs[i].tokens;
  if (prefills.empty()) return tokens;
  const auto add = [&](size_t i, int most) {
    const int more = std::min({most, room, needs[i].tokens - tokens[i]});
    tokens[i] += more;
    room -= more;
  };
  std::sort(prefills.begin(), prefills.end(), [&](size_t a, size_t b) { return needs[a].age < needs[b].age; });
  add(prefills.front(), (room + 1) / 2);
  std::vector<size_t> shortest(prefills.begin() + 1, prefills.end());
  std::sort(shortest.begin(), shortest.end(), [&](size_t a, size_t b) {
    return std::tie(needs[a].tokens, needs[a].age) < std::tie(needs[b].tokens, needs[b].age);
  });
  for (const size_t i : shortest)
    if (needs[i].tokens <= room) add(i, room);
  for (const size_t i : prefills) add(i, room);
  return tokens;
}

}  // namespace kvasir::sched
