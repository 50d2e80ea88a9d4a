// The Llama 2 kind of tokenizer.json (Llama 2, TinyLlama, Mistral, Phi-3: merges over characters, U+2581 for a space,
// byte fallback): what its values mean, refused by name where this program does not know.
#pragma once

#include "token/files/tokenizer_json.h"
#include "token/spm.h"

namespace kvasir {

/// Whether the file is of this kind rather than byte-level.
bool is_spm_json(const TokenizerJson& file);

/// Takes the file apart so that its text is freed before the index is built.
Result<SpmParts> understand_spm_json(TokenizerJson file);

}  // namespace kvasir
