// A GGUF file seen as the Hugging Face folder it was made from: the same configuration keys, the same tensor names.
// What each family calls them is in its own file (GgufNames); tokenizers are the engine's business.
#pragma once

#include <kvasir/result.h>

#include "arch/family.h"
#include "format/gguf.h"

namespace kvasir {

struct GgufModel {
  ConfigView config;
  TensorDir tensors;
};

/// Errors: an architecture that no family reads, an unknown RoPE scaling, a number that is missing or has another type.
Result<GgufModel> read_gguf_model(GgufFile file, const std::string& where);

}  // namespace kvasir
