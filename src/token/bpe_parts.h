// What every tokenizer over merges is made of, whichever way it cuts its text. Filled by the readers of files.
#pragma once

#include <optional>
#include <vector>

#include "token/added_tokens.h"
#include "token/bpe.h"
#include "token/vocabulary.h"

namespace kvasir {

struct BpeParts {
  Vocabulary vocabulary;  ///< the pieces as the file spells them, and the added tokens' contents
  BpeMerges merges;
  std::vector<AddedToken> added;  ///< found in the text before anything else looks at it
  std::vector<int> prefix;        ///< put before the text; the first is BOS
  std::optional<int> unk;         ///< for what the vocabulary cannot spell
  bool fuse_unk = false;          ///< one unk for several such in a row
  bool ignore_merges = false;     ///< a word that is a piece is that piece, whatever the merges say
};

}  // namespace kvasir
