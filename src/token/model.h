// What a kind of tokenizer (byte-level BPE, SPM) gives the Tokenizer facade. The rules are in byte_level.h and spm.h.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <kvasir/result.h>
#include <kvasir/tokenizer.h>

#include "token/vocabulary.h"

namespace kvasir {

/// No text longer than this is encoded: positions are 32 bits wide.
inline constexpr std::size_t kMaxTextBytes = std::size_t{1} << 30;
/// No file of a tokenizer is larger than this; the largest known tokenizer.json has about 35 MB.
inline constexpr std::size_t kMaxTokenizerBytes = std::size_t{512} << 20;

/// Immutable once made; every method is thread-safe.
class TokenModel {
 public:
  /// In place of the id before: nothing is known of it, or there is none.
  static constexpr int kMidText = -1;
  static constexpr int kTextStart = -2;

  virtual ~TokenModel() = default;

  /// Requires: at most kMaxTextBytes of text.
  /// `data`: where added tokens are not looked for.
  virtual Result<std::vector<int>> encode(std::string_view text, std::span<const TextSpan> data,
                                          bool add_bos) const = 0;
  /// The bytes of a token. Requires: vocabulary().has(id).
  virtual std::string text(int id) const = 0;
  virtual bool is_special(int id) const = 0;
  /// True for a token that is looked for in a text before anything else. Requires: vocabulary().has(id).
  virtual bool is_added(int id) const = 0;
  virtual std::optional<int> bos() const = 0;
  virtual std::optional<int> unk() const = 0;
  /// True where a space that opens `id` right after `previous` is the encoder's own and not the writer's. `previous` is
  /// an id, kMidText or kTextStart. Requires: vocabulary().has(id).
  virtual bool drops_space(int previous, int id) const = 0;
  virtual const Vocabulary& vocabulary() const = 0;

  /// What `id` adds to a text whose last token was `previous`; empty for an id that the vocabulary lacks.
  std::string text_after(int previous, int id) const {
    if (!vocabulary().has(id)) return {};
    std::string bytes = text(id);
    if (bytes.starts_with(' ') && drops_space(previous, id)) bytes.erase(0, 1);
    return bytes;
  }
};

/// `prefix` before `ids`, unless they start with it: a chat template may have written the beginning-of-text token
/// already, and twice would be another prompt.
inline void put_prefix(const std::vector<int>& prefix, std::vector<int>& ids) {
  const bool there = ids.size() >= prefix.size() && std::equal(prefix.begin(), prefix.end(), ids.begin());
  if (!there) ids.insert(ids.begin(), prefix.begin(), prefix.end());
}

}  // namespace kvasir
