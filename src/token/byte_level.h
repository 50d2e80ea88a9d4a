// Byte-level BPE from text to ids: added tokens, normalisation, words, merges. Knows no file format: tokenizer_parts.h
// and later readers fill ByteLevelParts.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "token/added_tokens.h"
#include "token/bpe.h"
#include "token/model.h"
#include "token/pretokenize.h"
#include "token/vocabulary.h"

namespace kvasir {

/// Everything that a byte-level BPE tokenizer is made of.
struct ByteLevelParts {
  Vocabulary vocabulary;  ///< the merges' pieces and the added tokens' contents
  BpeMerges merges;
  std::vector<AddedToken> added;
  std::vector<CutStage> cuts;
  std::vector<int> prefix;     ///< put before the text; the first is BOS
  std::optional<int> unk;      ///< for a byte without a token
  bool fuse_unk = false;       ///< one unk for several such bytes in a row
  bool ignore_merges = false;  ///< a word that is a piece is that piece, whatever the merges say
  bool nfc = false;            ///< normalise first
  bool leading_space = false;  ///< each text starts with a space, added where missing
};

class ByteLevelModel final : public TokenModel {
 public:
  /// Fails on a pattern that does not compile, or an added token that cannot be looked for.
  static Result<std::unique_ptr<const TokenModel>> make(ByteLevelParts parts);

  Result<std::vector<int>> encode(std::string_view text, bool add_bos) const override;
  std::string text(int id) const override;
  bool is_special(int id) const override;
  std::optional<int> bos() const override;
  std::optional<int> unk() const override { return parts_.unk; }
  bool drops_space_after_bos() const override { return false; }
  const Vocabulary& vocabulary() const override { return parts_.vocabulary; }

 private:
  class Encoder;
  explicit ByteLevelModel(ByteLevelParts parts);
  Result<void> index_added();

  ByteLevelParts parts_;
  PreTokenizer pre_tokenizer_;
  AddedTokenFinder raw_added_;
  AddedTokenFinder normalized_added_;
  std::vector<std::uint8_t> added_flags_;  // by id: 0 not added, 1 added, 2 added and special
  std::array<int, 256> byte_ids_{};        // -1 where a byte has no token
};

}  // namespace kvasir
