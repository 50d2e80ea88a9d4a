// Interprets the byte-level kind of tokenizer.json (GPT-2, Llama 3, Qwen, SmolLM2, Falcon); refuses unsupported values
// by name. tokenizer_spm_json.h handles the Llama 2 kind.
#pragma once

#include "token/byte_level.h"
#include "token/files/tokenizer_json.h"

namespace kvasir {

/// Takes the file by value, to free its text before the index is built.
Result<ByteLevelTables> understand_byte_json(TokenizerJson file);

}  // namespace kvasir
