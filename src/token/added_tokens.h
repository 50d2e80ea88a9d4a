// Finding the tokens that a file adds outside its merges (special tokens, mostly) in a text, before any cutting.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <kvasir/result.h>
#include <kvasir/tokenizer.h>
#include <boost/unordered/unordered_flat_map.hpp>

namespace kvasir {

struct AddedToken {
  std::string content;
  int id = -1;
  bool special = false;
  bool normalized = false;   ///< looked for in the normalised text, not in the raw one
  bool lstrip = false;       ///< swallows the white space before it
  bool rstrip = false;       ///< swallows the white space after it
  bool single_word = false;  ///< only where no letter, digit or mark stands beside it
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
  /// The leftmost, longest token at or after `from` with no byte in `data`. White space before `from` and in `data` is
  /// never swallowed.
  std::optional<Found> next(std::string_view text, std::size_t from, std::span<const TextSpan> data = {}) const;

  /// The longest token that begins exactly at `at`, whatever stands around it.
  std::optional<Found> longest_at(std::string_view text, std::size_t at) const;

  /// Appends the id of every token in the text, outside `data`, to `out` and gives what lies between them to `rest`,
  /// which returns a Result<void>, in order.
  template <class Rest>
  Result<void> split(std::string_view text, std::span<const TextSpan> data, std::vector<int>& out,
                     const Rest& rest) const {
    std::size_t done = 0;
    while (const auto found = next(text, done, data)) {
      if (found->begin > done) KVASIR_CHECK(rest(text.substr(done, found->begin - done)));
      out.push_back(found->id);
      done = found->end;
    }
    if (done < text.size()) return rest(text.substr(done));
    return {};
  }

  bool empty() const { return tokens_.empty(); }

  static constexpr std::size_t kMaxContentBytes = 1024;

 private:
  struct Entry {
    int id;
    bool lstrip;
    bool rstrip;
    bool single_word;
  };
  // -1 if nothing starts at `at`, else the entry; `length` is its content's.
  int entry_at(std::string_view text, std::size_t at, std::size_t& length) const;

  std::vector<Entry> tokens_;
  std::vector<int> entry_of_node_ = {-1};                             // node 0 is the root
  boost::unordered_flat_map<std::uint64_t, std::uint32_t> children_;  // node << 8 | byte
  bool starts_[256] = {};
};

/// The added tokens of one tokenizer. Immutable once made, then thread-safe.
class AddedTokens {
 public:
  /// `normalize` is what the tokenizer does to a text before it looks for the normalised ones. Fails on a content that
  /// cannot be looked for. Requires: ids below `vocab_size`.
  static Result<AddedTokens> make(const std::vector<AddedToken>& tokens, int vocab_size,
                                  const std::function<Result<std::string>(std::string_view)>& normalize);

  /// Requires for both: 0 <= id < vocab_size.
  bool has(int id) const { return flags_[static_cast<std::size_t>(id)] != 0; }
  bool is_special(int id) const { return flags_[static_cast<std::size_t>(id)] == kSpecial; }

  const AddedTokenFinder& raw() const { return raw_; }
  const AddedTokenFinder& normalized() const { return normalized_; }

 private:
  static constexpr std::uint8_t kAdded = 1;
  static constexpr std::uint8_t kSpecial = 2;

  AddedTokenFinder raw_;
  AddedTokenFinder normalized_;
  std::vector<std::uint8_t> flags_;  // by id; 0 is not added
};

}  // namespace kvasir
