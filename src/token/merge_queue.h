// The merging loop that BPE (by rank) and SPM (by score) share: a heap of candidate pairs over a linked list of
// symbols, so that n symbols take O(n log n), whatever the text. What a pair becomes is the caller's lookup.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace kvasir {

/// What two adjacent symbols become. The smallest priority is merged first; of equals, the leftmost.
struct MergeTarget {
  std::uint32_t priority;
  int id;
};

/// Keeps its buffers from word to word. Not thread-safe: one per call of encode.
class MergeQueue {
 public:
  /// Appends to `out` what is left of `initial` once no pair can be merged.
  /// lookup(left, right) -> std::optional<MergeTarget>. Requires: fewer than 2^31 symbols.
  template <class Lookup>
  void merge(std::span<const int> initial, const Lookup& lookup, std::vector<int>& out) {
    symbols_.clear();
    heap_.clear();
    const int count = static_cast<int>(initial.size());
    for (int i = 0; i < count; ++i) {
      symbols_.push_back({initial[static_cast<std::size_t>(i)], i - 1, i + 1 < count ? i + 1 : -1, 1});
    }
    for (int i = 0; i + 1 < count; ++i) consider(i, lookup, false);
    std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
      const Candidate best = heap_.back();
      heap_.pop_back();
      if (is_current(best)) apply(best, lookup);
    }
    for (int i = count > 0 ? 0 : -1; i >= 0; i = at(i).next) out.push_back(at(i).id);
  }

 private:
  // A doubly linked list inside one vector. `length` counts the initial symbols that this one covers; 0 once merged
  // away.
  struct Symbol {
    int id;
    int previous;
    int next;
    int length;
  };
  struct Candidate {
    std::uint64_t key;  // priority, then position
    int id;
    int length;
    bool operator>(const Candidate& other) const { return key > other.key; }
    int position() const { return static_cast<int>(key & 0xFFFFFFFFu); }
  };

  Symbol& at(int i) { return symbols_[static_cast<std::size_t>(i)]; }

  template <class Lookup>
  void consider(int left, const Lookup& lookup, bool keep_heap) {
    const Symbol& symbol = at(left);
    const Symbol& right = at(symbol.next);
    const std::optional<MergeTarget> target = lookup(symbol.id, right.id);
    if (!target) return;
    heap_.push_back({std::uint64_t{target->priority} << 32 | static_cast<std::uint32_t>(left), target->id,
                     symbol.length + right.length});
    if (keep_heap) std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  }

  // Symbols only grow to the right, so a pair that still covers as many initial symbols is still the same pair.
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
    if (left.next >= 0) {
      at(left.next).previous = position;
      consider(position, lookup, true);
    }
    if (left.previous >= 0) consider(left.previous, lookup, true);
  }

  std::vector<Symbol> symbols_;
  std::vector<Candidate> heap_;
};

}  // namespace kvasir
