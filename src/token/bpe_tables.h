// The data that byte-level and SentencePiece-style tokenizers share. The readers in files/ fill it.
#pragma once

#include <optional>
#include <vector>

#include "token/added_tokens.h"
#include "token/bpe.h"
#include "token/vocabulary.h"

namespace kvasir {

struct BpeTables {
  Vocabulary vocabulary;  ///< the pieces as the file spells them, and the added tokens' contents
  BpeMerges merges;
  std::vector<AddedToken> added;  ///< matched in the text before any other step
  std::vector<int> prefix;        ///< ids put before the text; the first is BOS
  std::optional<int> unk;         ///< id for text that the vocabulary cannot spell
  bool fuse_unk = false;          ///< consecutive unknowns become one unk
  bool ignore_merges = false;     ///< a word that equals a piece becomes that piece without merging
};

}  // namespace kvasir
