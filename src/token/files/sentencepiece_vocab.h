// Reading a SentencePiece .model file into the parts of an SPM-style tokenizer. Only BPE models that leave the text as
// it is are understood; everything else is refused by its name.
#pragma once

#include <string_view>

#include <kvasir/result.h>

#include "token/spm.h"

namespace kvasir {

/// The bytes of a .model. As SentencePiece does, control pieces are not looked for in a text, and user-defined ones
/// are.
Result<SpmParts> read_sentencepiece_vocab(std::string_view bytes);

}  // namespace kvasir
