// Reads llama2.c's tokenizer.bin into the tables of an SPM-style tokenizer.
#pragma once

#include <string_view>

#include <kvasir/result.h>

#include "token/spm.h"

namespace kvasir {

/// `bytes` is the whole tokenizer.bin: max_token_length u32, then per token score f32, length u32, bytes
/// (little-endian). Token 0 is unknown, 1 BOS, 2 EOS, 3 + b the byte b. Source: karpathy/llama2.c run.c, `encode` and
/// `decode`.
Result<SpmTables> read_llama2c_vocab(std::string_view bytes, int vocab_size);

}  // namespace kvasir
