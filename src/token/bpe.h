// The merge table of byte-pair encoding, and merging within one word. pretokenize.h splits a text into words.
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

/// Maps a pair of ids to the merged id and its rank. 150 thousand merges take about 4 MB.
class BpeMerges {
 public:
  void reserve(std::size_t count) { targets_.reserve(count); }

  /// Adds a merge at the next rank; `left` and `right` are spelled as in the vocabulary. A repeated pair takes the
  /// later rank, as in the tools that write these files. Fails if a half is empty, or if a half or the result is not in
  /// the vocabulary; the caller sets the error's `where`.
  Result<void> add(std::string_view left, std::string_view right, const Vocabulary& vocabulary);

  std::optional<MergeTarget> find(int left, int right) const {
    const auto it = targets_.find(key(left, right));
    if (it == targets_.end()) return std::nullopt;
    return it->second;
  }

  /// Returns the pairs of ids that merge, best rank first. A repeated pair appears once, at its later rank.
  std::vector<std::pair<int, int>> ranked() const;

  /// Merges the symbols of one word (ids of this vocabulary) and appends the resulting ids to `out`.
  void merge(MergeQueue& queue, std::vector<int>& out) const;

 private:
  static std::uint64_t key(int left, int right) {
    return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
  }

  boost::unordered_flat_map<std::uint64_t, MergeTarget> targets_;
  std::uint32_t next_rank_ = 0;
};

}  // namespace kvasir
