// Interprets the Llama 2 kind of tokenizer.json (Llama 2, TinyLlama, Mistral, Phi-3: merges over characters, U+2581 for
// a space, byte fallback); refuses unsupported values by name.
#pragma once

#include "token/files/tokenizer_json.h"
#include "token/spm.h"

namespace kvasir {

/// True if the file is of this kind rather than byte-level.
bool is_spm_json(const TokenizerJson& file);

/// Takes the file by value, to free its text before the index is built.
Result<SpmTables> understand_spm_json(TokenizerJson file);

}  // namespace kvasir
