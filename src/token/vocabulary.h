// The pieces of a vocabulary by id and the ids by piece, in one arena. The model decides what a piece means (bytes,
// words).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <kvasir/result.h>
#include <boost/unordered/unordered_flat_set.hpp>

namespace kvasir {

/// Ids may have gaps, at most this many, so that a table by id stays small.
inline constexpr std::int64_t kMaxIdGap = std::int64_t{1} << 20;

/// Ids may have gaps. 150 thousand pieces take about 4 MB: the index holds ids, not copies of the pieces.
class Vocabulary {
 public:
  Vocabulary();

  /// Reserves room for `count` pieces of `bytes` bytes in all.
  void reserve(std::size_t count, std::size_t bytes);

  /// Fails if the id is negative, at or above `id_limit`, or taken, or if the piece is already there.
  Result<void> add(std::string_view piece, std::int64_t id, std::int64_t id_limit);

  /// As `add`, but accepts a piece that is already there; find() keeps returning the first id.
  Result<void> add_shadowed(std::string_view piece, std::int64_t id, std::int64_t id_limit);

  /// The largest id + 1.
  int size() const { return static_cast<int>(store_->spans.size()); }
  bool has(int id) const;
  /// Empty for an id without a piece. The view is valid until the next `add`, at most as long as the vocabulary.
  std::string_view piece(int id) const;
  std::optional<int> find(std::string_view piece) const;

 private:
  static constexpr std::uint32_t kHole = UINT32_MAX;
  struct Span {
    std::uint32_t begin = kHole;
    std::uint32_t length = 0;
  };
  struct Store {
    std::string bytes;
    std::vector<Span> spans;
    std::string_view at(int id) const {
      const Span span = spans[static_cast<std::size_t>(id)];
      return std::string_view(bytes).substr(span.begin, span.length);
    }
  };
  // Both take an id or a piece, so that looking up a piece copies nothing.
  struct Hash {
    using is_transparent = void;
    const Store* store;
    std::size_t operator()(std::string_view piece) const { return std::hash<std::string_view>{}(piece); }
    std::size_t operator()(int id) const { return (*this)(store->at(id)); }
  };
  struct Equal {
    using is_transparent = void;
    const Store* store;
    bool operator()(int a, int b) const { return a == b || store->at(a) == store->at(b); }
    bool operator()(std::string_view a, int b) const { return a == store->at(b); }
    bool operator()(int a, std::string_view b) const { return store->at(a) == b; }
  };

  Result<void> place(std::string_view piece, std::int64_t id, std::int64_t id_limit);

  std::unique_ptr<Store> store_;  // on the heap, so that the index survives a move
  boost::unordered_flat_set<int, Hash, Equal> index_;
};

}  // namespace kvasir
