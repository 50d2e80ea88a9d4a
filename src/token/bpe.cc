// Building and applying the BPE merge table. Source: Sennrich et al. 2016 (arXiv:1508.07909), algorithm 1.
#include "token/bpe.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "token/utf8.h"

namespace kvasir {

Result<void> BpeMerges::add(std::string_view left, std::string_view right, const Vocabulary& vocabulary) {
  const std::uint32_t rank = next_rank_++;
  const auto refuse = [&](std::string_view piece, std::string_view role) {
    return fail(Error::damaged, fmt::format("merge {} ({} + {}): the {} {} is not in the vocabulary", rank + 1,
                                            quote(left), quote(right), role, quote(piece)));
  };
  if (left.empty() || right.empty()) {
    return fail(Error::damaged,
                fmt::format("merge {} ({} + {}) has an empty half", rank + 1, quote(left), quote(right)));
  }
  const auto left_id = vocabulary.find(left);
  if (!left_id) return refuse(left, "left half");
  const auto right_id = vocabulary.find(right);
  if (!right_id) return refuse(right, "right half");
  const std::string whole = std::string(left).append(right);
  const auto id = vocabulary.find(whole);
  if (!id) return refuse(whole, "result");
  targets_.insert_or_assign(key(*left_id, *right_id), MergeTarget{rank, *id});
  return {};
}

void BpeMerges::merge(MergeQueue& queue, std::vector<int>& out) const {
  queue.merge(
      [this](const MergeQueue::Symbol& left, const MergeQueue::Symbol& right) { return find(left.id, right.id); });
  queue.for_each([&out](const MergeQueue::Symbol& symbol) { out.push_back(symbol.id); });
}

std::vector<std::pair<int, int>> BpeMerges::ranked() const {
  std::vector<std::pair<std::uint32_t, std::uint64_t>> order;
  order.reserve(targets_.size());
  for (const auto& [pair, target] : targets_) order.emplace_back(target.priority, pair);
  std::sort(order.begin(), order.end());
  std::vector<std::pair<int, int>> pairs;
  pairs.reserve(order.size());
  for (const auto& [rank, pair] : order)
    pairs.emplace_back(static_cast<int>(pair >> 32), static_cast<int>(pair & UINT32_MAX));
  return pairs;
}

}  // namespace kvasir
