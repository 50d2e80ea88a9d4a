// What every tokenizer.json with a BPE model has, whichever way it cuts its text: vocabulary, merges, added tokens and
// the tokens put before a text.
#pragma once

#include "token/bpe_parts.h"
#include "token/files/tokenizer_json.h"

namespace kvasir {

/// Refuses a model that is not BPE, or has a part that would change ids and is not understood, by its name.
/// `byte_fallback` is the caller's question: what it means depends on the rest of the file.
Result<void> check_bpe_model(const TokenizerJson& file);

Result<BpeParts> read_bpe_parts(const TokenizerJson& file);

}  // namespace kvasir
