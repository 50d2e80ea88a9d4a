// What a kind of tokenizer (byte-level BPE, SPM) gives the Tokenizer facade. The rules are in byte_level.h and spm.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <kvasir/result.h>

#include "token/vocabulary.h"

namespace kvasir {

/// No text longer than this is encoded: positions are 32 bits wide.
inline constexpr std::size_t kMaxTextBytes = std::size_t{1} << 30;

/// Immutable once made; every method is thread-safe.
class TokenModel {
 public:
  virtual ~TokenModel() = default;

  /// Requires: at most kMaxTextBytes of text.
  virtual Result<std::vector<int>> encode(std::string_view text, bool add_bos) const = 0;
  /// The bytes of a token. Requires: vocabulary().has(id).
  virtual std::string text(int id) const = 0;
  virtual bool is_special(int id) const = 0;
  virtual std::optional<int> bos() const = 0;
  virtual std::optional<int> unk() const = 0;
  /// True where a space that opens the text after BOS is the encoder's own and not the writer's.
  virtual bool drops_space_after_bos() const = 0;
  virtual const Vocabulary& vocabulary() const = 0;

  /// What `id` adds to a text whose last token was `previous`; empty for an id that the vocabulary lacks.
  std::string text_after(int previous, int id) const {
    if (!vocabulary().has(id)) return {};
    std::string bytes = text(id);
    if (drops_space_after_bos() && bos() == previous && bytes.starts_with(' ')) bytes.erase(0, 1);
    return bytes;
  }
};

}  // namespace kvasir
