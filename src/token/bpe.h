// The merge table of byte-pair encoding and the merging of one word. Cutting text into words is pretokenize.h's.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <kvasir/result.h>
#include <boost/unordered/unordered_flat_map.hpp>

#include "token/merge_queue.h"
#include "token/vocabulary.h"

namespace kvasir {

/// Pairs of ids and what they become, by rank. 150 thousand merges take about 4 MB.
class BpeMerges {
 public:
  void reserve(std::size_t count) { targets_.reserve(count); }

  /// Adds the next rank: `left` and `right` in the vocabulary's spelling. A pair that comes again takes the later rank,
  /// as in the tools that write these files. Fails if a half or the whole is not in the vocabulary; `where` is the
  /// caller's.
  Result<void> add(std::string_view left, std::string_view right, const Vocabulary& vocabulary);

  std::optional<MergeTarget> find(int left, int right) const {
    const auto it = targets_.find(key(left, right));
    if (it == targets_.end()) return std::nullopt;
    return it->second;
  }

  /// The pairs of ids that merge, best first; of a pair that came twice its later place.
  std::vector<std::pair<int, int>> ranked() const;

  /// Merges the symbols of one word, whose ids are this vocabulary's, and appends what they become.
  void merge(MergeQueue& queue, std::vector<int>& out) const;

 private:
  static std::uint64_t key(int left, int right) {
    return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
  }

  boost::unordered_flat_map<std::uint64_t, MergeTarget> targets_;
  std::uint32_t next_rank_ = 0;
};

}  // namespace kvasir
