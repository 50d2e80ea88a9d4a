// Presents a GGUF file as the Hugging Face folder it was made from: the same configuration keys, the same tensor names.
// Each family lists its own GGUF names (GgufNames). Tokenizers are not read here.
#pragma once

#include <optional>
#include <vector>

#include <kvasir/result.h>
#include <kvasir/tokenizer.h>

#include "arch/family.h"
#include "format/gguf.h"

namespace kvasir {

/// Keys of GgufModel::sampling. kGgufSampling is true if the values come from a GGUF file: then absent keys mean
/// Kvasir's defaults. kGgufLastN is the number of tokens that the repetition penalty looks at.
inline constexpr const char* kGgufSampling = "gguf.sampling";
inline constexpr const char* kGgufLastN = "gguf.repeat_last_n";

struct GgufModel {
  ConfigView config;
  std::optional<ConfigView> sampling;  ///< general.sampling.*, under the keys of generation_config.json
  TensorDir tensors;
  std::vector<Ignored> ignored;  ///< metadata that is not used, except the tokenizer's
};

/// Translates a GGUF file. Errors: an architecture that no family reads, an unknown RoPE scaling, a number that is
/// missing or has another type, an unsupported key that changes results.
Result<GgufModel> read_gguf_model(GgufFile file, const std::string& where);

}  // namespace kvasir
