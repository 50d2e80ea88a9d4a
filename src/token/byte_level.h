// Byte-level BPE from text to ids: added tokens, normalisation, words, merges. Knows no file format: tokenizer_parts.h
// and later readers fill ByteLevelParts.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "token/added_tokens.h"
#include "token/bpe_parts.h"
#include "token/model.h"
#include "token/pretokenize.h"
#include "token/seams.h"

namespace kvasir {

/// Everything that a byte-level BPE tokenizer is made of. `unk` stands for a byte without a token.
struct ByteLevelParts : BpeParts {
  std::vector<CutStage> cuts;
  bool nfc = false;            ///< normalise first
  bool leading_space = false;  ///< each text starts with a space, added where missing
};

class ByteLevelModel final : public TokenModel {
 public:
  /// Fails on a pattern that does not compile, or an added token that cannot be looked for.
  static Result<std::unique_ptr<const TokenModel>> make(ByteLevelParts parts);

  Result<std::vector<int>> encode(std::string_view text, std::span<const TextSpan> data, bool add_bos) const override;
  std::string text(int id) const override;
  bool is_special(int id) const override;
  bool is_added(int id) const override { return added_.has(id); }
  std::optional<int> bos() const override;
  std::optional<int> unk() const override { return parts_.unk; }
  bool drops_space(int, int) const override { return false; }
  const Vocabulary& vocabulary() const override { return parts_.vocabulary; }
  const ByteLevelParts& parts() const { return parts_; }

 private:
  class Encoder;
  explicit ByteLevelModel(ByteLevelParts parts);

  ByteLevelParts parts_;
  PreTokenizer pre_tokenizer_;
  AddedTokens added_;
  Seams seams_;                      // of the bytes' spelling
  std::array<int, 256> byte_ids_{};  // -1 where a byte has no token
};

}  // namespace kvasir
