// The merging loop that BPE (by rank) and SPM (by score) share: a heap of candidate pairs over a linked list of
// symbols. n symbols take O(n log n) for any text. The caller's lookup decides what a pair becomes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace kvasir {

/// The result of merging two adjacent symbols. The smallest priority merges first; among equals, the leftmost.
struct MergeTarget {
  std::uint32_t priority;
  int id;
};

/// Usage: clear, add every symbol, merge, for_each. Keeps its buffers from word to word. Not thread-safe: one per call
/// of encode.
class MergeQueue {
 public:
  /// A symbol's id (the caller's) and the bytes of the text that it covers. Symbols form a doubly linked list inside
  /// one vector; `length` is 0 once merged away.
  struct Symbol {
    int id;
    std::uint32_t begin;
    std::uint32_t length;
    int previous;
    int next;
  };

  void clear() {
    symbols_.clear();
    heap_.clear();
  }

  /// Appends a symbol that begins where the last one ends. Requires: length > 0, fewer than 2^31 symbols and 2^32 bytes
  /// in all.
  void add(int id, std::uint32_t length) {
    const int at = static_cast<int>(symbols_.size());
    std::uint32_t begin = 0;
    if (at > 0) {
      begin = symbols_.back().begin + symbols_.back().length;
      symbols_.back().next = at;
    }
    symbols_.push_back({id, begin, length, at - 1, -1});
  }

  /// Merges until no pair merges any more. lookup(const Symbol& left, const Symbol& right) ->
  /// std::optional<MergeTarget>.
  template <class Lookup>
  void merge(const Lookup& lookup) {
    const int count = static_cast<int>(symbols_.size());
    for (int i = 0; i + 1 < count; ++i) consider(i, lookup, false);
    std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
      const Candidate best = heap_.back();
      heap_.pop_back();
      if (is_current(best)) apply(best, lookup);
    }
  }

  /// Calls visit(const Symbol&) for each remaining symbol, in order.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (int i = symbols_.empty() ? -1 : 0; i >= 0; i = symbols_[static_cast<std::size_t>(i)].next) {
      visit(symbols_[static_cast<std::size_t>(i)]);
    }
  }

 private:
  struct Candidate {
    std::uint64_t key;  // priority, then position
    int id;
    std::uint32_t length;
    bool operator>(const Candidate& other) const { return key > other.key; }
    int position() const { return static_cast<int>(key & 0xFFFFFFFFu); }
  };

  Symbol& at(int i) { return symbols_[static_cast<std::size_t>(i)]; }

  template <class Lookup>
  void consider(int left, const Lookup& lookup, bool keep_heap) {
    const Symbol& symbol = at(left);
    const Symbol& right = at(symbol.next);
    const std::optional<MergeTarget> target = lookup(symbol, right);
    if (!target) return;
    heap_.push_back({std::uint64_t{target->priority} << 32 | static_cast<std::uint32_t>(left), target->id,
                     symbol.length + right.length});
    if (keep_heap) std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  }

  // Symbols only grow to the right, so a pair that still covers as many bytes is still the same pair.
  bool is_current(const Candidate& candidate) {
    const Symbol& left = at(candidate.position());
    return left.length > 0 && left.next >= 0 && left.length + at(left.next).length == candidate.length;
  }

  template <class Lookup>
  void apply(const Candidate& candidate, const Lookup& lookup) {
    const int position = candidate.position();
    Symbol& left = at(position);
    Symbol& right = at(left.next);
    left.id = candidate.id;
    left.length = candidate.length;
    left.next = right.next;
    right.length = 0;
    // Consider the left pair first: if two pairs make the same text, spm.cc remembers the split considered last.
    if (left.previous >= 0) consider(left.previous, lookup, true);
    if (left.next >= 0) {
      at(left.next).previous = position;
      consider(position, lookup, true);
    }
  }

  std::vector<Symbol> symbols_;
  std::vector<Candidate> heap_;
};

}  // namespace kvasir
