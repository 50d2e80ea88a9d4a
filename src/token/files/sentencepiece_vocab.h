// Reads a SentencePiece .model file into the tables of an SPM-style tokenizer. Supports only BPE models that do not
// normalise the text; refuses everything else by name.
#pragma once

#include <string_view>

#include <kvasir/result.h>

#include "token/spm.h"

namespace kvasir {

/// `bytes` is the whole .model. As in SentencePiece, user-defined pieces are matched in a text, control pieces are not.
Result<SpmTables> read_sentencepiece_vocab(std::string_view bytes);

}  // namespace kvasir
