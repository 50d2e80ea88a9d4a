// What the values of a tokenizer.json mean, refused by name where this program does not know.
#pragma once

#include "token/byte_level.h"
#include "token/tokenizer_json.h"

namespace kvasir {

/// Takes the file apart so that its text is freed before the index is built.
Result<ByteLevelParts> understand_tokenizer_json(TokenizerJson file);

}  // namespace kvasir
