// Byte-level BPE from text to ids: added tokens, normalisation, words, merges. Knows no file format:
// files/tokenizer_byte_json.h and files/gguf_vocab.h fill ByteLevelTables.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "token/added_tokens.h"
#include "token/bpe_tables.h"
#include "token/model.h"
#include "token/pretokenize.h"
#include "token/safe_cuts.h"

namespace kvasir {

/// All data of a byte-level BPE tokenizer. `unk` replaces a byte without a token.
struct ByteLevelTables : BpeTables {
  std::vector<CutStage> cuts;
  bool nfc = false;            ///< normalise first
  bool leading_space = false;  ///< each stretch between added tokens starts with a space, added if missing
};

class ByteLevelModel final : public TokenModel {
 public:
  /// Fails if a pattern does not compile or an added token is empty or too long.
  static Result<std::unique_ptr<const TokenModel>> make(ByteLevelTables tables);

  Result<std::vector<int>> encode(std::string_view text, std::span<const TextSpan> data, bool add_bos) const override;
  std::string text(int id) const override;
  bool is_special(int id) const override;
  bool is_added(int id) const override { return added_.has(id); }
  std::optional<int> bos() const override;
  std::optional<int> unk() const override { return tables_.unk; }
  bool drops_space(int, int) const override { return false; }
  const Vocabulary& vocabulary() const override { return tables_.vocabulary; }
  const ByteLevelTables& tables() const { return tables_; }

 private:
  class Encoder;
  explicit ByteLevelModel(ByteLevelTables tables);

  ByteLevelTables tables_;
  PreTokenizer pre_tokenizer_;
  AddedTokens added_;
  Seams seams_;                      // over GPT-2's spelling of bytes
  std::array<int, 256> byte_ids_{};  // -1 where a byte has no token
};

}  // namespace kvasir
