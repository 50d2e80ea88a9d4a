// Finds the tokens that a file adds outside its merges (mostly special tokens) in a text, before it is split into
// words.
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
  bool normalized = false;   ///< matched in the normalised text, not in the raw one
  bool lstrip = false;       ///< swallows the white space before it
  bool rstrip = false;       ///< swallows the white space after it
  bool single_word = false;  ///< only if no letter, digit, mark or connector is next to it
};

/// A trie over the contents of added tokens. Thread-safe once filled.
class AddedTokenFinder {
 public:
  /// Requires: content is not empty, at most kMaxContentBytes.
  void add(const AddedToken& token, std::string_view content);

  struct Found {
    std::size_t begin;  ///< swallowed white space included
    std::size_t end;
    int id;
  };
  /// Returns the leftmost, longest token that begins at or after `from` and has no byte in `data`. Never swallows white
  /// space before `from` or in `data`.
  std::optional<Found> next(std::string_view text, std::size_t from, std::span<const TextSpan> data = {}) const;

  /// Returns the longest token that begins exactly at `at`; ignores lstrip, rstrip and single_word.
  std::optional<Found> longest_at(std::string_view text, std::size_t at) const;

  /// Appends the id of every token outside `data` to `out`. Calls `rest`, which returns a Result<void>, with each part
  /// of the text between tokens, in order.
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
  // Returns the entry whose content starts at `at` and sets `length` to the content's; -1 if there is none.
  int entry_at(std::string_view text, std::size_t at, std::size_t& length) const;

  std::vector<Entry> tokens_;
  std::vector<int> entry_of_node_ = {-1};                             // node 0 is the root
  boost::unordered_flat_map<std::uint64_t, std::uint32_t> children_;  // node << 8 | byte
  bool starts_[256] = {};
};

/// The added tokens of one tokenizer. Immutable once made, then thread-safe.
class AddedTokens {
 public:
  /// `normalize` is the tokenizer's normalisation; it is applied to the contents of `normalized` tokens. Fails if a
  /// content is empty or longer than kMaxContentBytes, or if `normalize` fails. Requires: ids below `vocab_size`.
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
  std::vector<std::uint8_t> flags_;  // by id; 0: not an added token
};

}  // namespace kvasir
