// The byte-level kind of tokenizer.json (GPT-2, Llama 3, Qwen, SmolLM2, Falcon): what its values mean, refused by name
// where this program does not know. The Llama 2 kind is tokenizer_spm_json.h's.
#pragma once

#include "token/byte_level.h"
#include "token/files/tokenizer_json.h"

namespace kvasir {

/// Takes the file apart so that its text is freed before the index is built.
Result<ByteLevelParts> understand_byte_json(TokenizerJson file);

}  // namespace kvasir
