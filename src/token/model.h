// The interface between the Tokenizer facade and a kind of tokenizer: byte-level BPE (byte_level.h) or SPM (spm.h).
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

/// Upper bound on the bytes of a text to encode: positions are 32 bits wide.
inline constexpr std::size_t kMaxTextBytes = std::size_t{1} << 30;
/// Upper bound on the bytes of a tokenizer file; the largest known tokenizer.json has about 35 MB.
inline constexpr std::size_t kMaxTokenizerBytes = std::size_t{512} << 20;

/// Immutable once made; every method is thread-safe.
class TokenModel {
 public:
  /// Values of `previous` if the previous token is unknown (kMidText) or there is none (kTextStart).
  static constexpr int kMidText = -1;
  static constexpr int kTextStart = -2;

  virtual ~TokenModel() = default;

  /// Returns the ids of `text`. Added tokens are not matched inside `data`. Requires: at most kMaxTextBytes of text.
  virtual Result<std::vector<int>> encode(std::string_view text, std::span<const TextSpan> data,
                                          bool add_bos) const = 0;
  /// The bytes of a token. Requires: vocabulary().has(id).
  virtual std::string text(int id) const = 0;
  virtual bool is_special(int id) const = 0;
  /// True for a token that is matched in a text before any other step. Requires: vocabulary().has(id).
  virtual bool is_added(int id) const = 0;
  virtual std::optional<int> bos() const = 0;
  virtual std::optional<int> unk() const = 0;
  /// True if the space that starts `id`, right after `previous`, was added by the encoder and is not in the text.
  /// `previous` is an id, kMidText or kTextStart. Requires: vocabulary().has(id).
  virtual bool drops_space(int previous, int id) const = 0;
  virtual const Vocabulary& vocabulary() const = 0;

  /// Returns the bytes that `id` adds to a text whose last token is `previous`; empty if the vocabulary lacks `id`.
  std::string text_after(int previous, int id) const {
    if (!vocabulary().has(id)) return {};
    std::string bytes = text(id);
    if (bytes.starts_with(' ') && drops_space(previous, id)) bytes.erase(0, 1);
    return bytes;
  }
};

/// Puts `prefix` before `ids` unless they start with it: a chat template may have written BOS already, and a second BOS
/// would be a different prompt.
inline void put_prefix(const std::vector<int>& prefix, std::vector<int>& ids) {
  const bool there = ids.size() >= prefix.size() && std::equal(prefix.begin(), prefix.end(), ids.begin());
  if (!there) ids.insert(ids.begin(), prefix.begin(), prefix.end());
}

}  // namespace kvasir
