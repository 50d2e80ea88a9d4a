// Reads what every tokenizer.json with a BPE model has: vocabulary, merges, added tokens and the tokens put before a
// text.
#pragma once

#include "token/bpe_tables.h"
#include "token/files/tokenizer_json.h"

namespace kvasir {

/// Refuses by name a model that is not BPE or has an unsupported part that would change ids. The caller checks
/// `byte_fallback`, whose meaning depends on the rest of the file.
Result<void> check_bpe_model(const TokenizerJson& file);

Result<BpeTables> read_bpe_tables(const TokenizerJson& file);

}  // namespace kvasir
