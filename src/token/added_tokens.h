// Finding the tokens that a file adds outside its merges (special tokens, mostly) in a text, before any cutting.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/unordered/unordered_flat_map.hpp>

namespace kvasir {

struct AddedToken {
  std::string content;
  int id = -1;
  bool special = false;
  bool normalized = false;  ///< looked for in the normalised text, not in the raw one
  bool lstrip = false;      ///< swallows the white space before it
  bool rstrip = false;      ///< swallows the white space after it
};

/// A trie over the contents. Immutable once filled, then thread-safe.
class AddedTokenFinder {
 public:
  /// Requires: content is not empty, at most kMaxContentBytes.
  void add(const AddedToken& token, std::string_view content);

  struct Found {
    std::size_t begin;  ///< swallowed white space included
    std::size_t end;
    int id;
  };
  /// The leftmost, longest token at or after `from`. White space before `from` is never swallowed.
  std::optional<Found> next(std::string_view text, std::size_t from) const;

  bool empty() const { return tokens_.empty(); }

  static constexpr std::size_t kMaxContentBytes = 1024;

 private:
  struct Entry {
    int id;
    bool lstrip;
    bool rstrip;
  };
  // -1 if nothing starts at `at`, else the entry; `length` is its content's.
  int longest_at(std::string_view text, std::size_t at, std::size_t& length) const;

  std::vector<Entry> tokens_;
  std::vector<int> entry_of_node_ = {-1};                             // node 0 is the root
  boost::unordered_flat_map<std::uint64_t, std::uint32_t> children_;  // node << 8 | byte
  bool starts_[256] = {};
};

}  // namespace kvasir
