// A GGUF file seen as the Hugging Face folder it was made from: the same configuration keys, the same tensor names.
// What each family calls them is in its own file (GgufNames); tokenizers are the engine's business.
#pragma once

#include <optional>
#include <vector>

#include <kvasir/result.h>
#include <kvasir/tokenizer.h>

#include "arch/family.h"
#include "format/gguf.h"

namespace kvasir {

/// In the sampling that a GGUF file recommends: keys that are absent mean Kvasir's defaults, and how many tokens the
/// repetition penalty looks at.
inline constexpr const char* kGgufSampling = "gguf.sampling";
inline constexpr const char* kGgufLastN = "gguf.repeat_last_n";

struct GgufModel {
  ConfigView config;
  std::optional<ConfigView> sampling;  ///< general.sampling.*, under the keys of generation_config.json
  TensorDir tensors;
  std::vector<Ignored> ignored;  ///< metadata that is not used; the tokenizer's is not in it
};

/// Errors: an architecture that no family reads, an unknown RoPE scaling, a number that is missing or has another type,
/// a key that changes results and is not supported.
Result<GgufModel> read_gguf_model(GgufFile file, const std::string& where);

}  // namespace kvasir
