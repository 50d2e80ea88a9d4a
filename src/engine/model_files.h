// Which files belong to a model and in what format they are: all of them end as a Hugging Face configuration and
// tensors under Hugging Face's names. Nothing is loaded here; model.h does that.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include <kvasir/result.h>
#include <kvasir/tokenizer.h>

#include "arch/family.h"
#include "format/config_view.h"
#include "format/tensor_file.h"

namespace kvasir {

struct ModelFiles {
  std::string format;  ///< "safetensors", "GGUF v3", "llama2.c"
  ConfigView config;
  std::optional<ConfigView> generation;  ///< generation_config.json
  TensorDir tensors;
  std::filesystem::path tokenizer;  ///< empty: none found
};

/// A Hugging Face folder, a .gguf, or a llama2.c .bin.
Result<ModelFiles> read_model_files(const std::filesystem::path& path);

/// The numbers of a model. The end-of-text ids of generation_config.json win.
Result<ModelConfig> read_config(const Family& family, const ModelFiles& files);

/// The tokenizer's file in a Hugging Face folder; empty when there is none.
std::filesystem::path tokenizer_in(const std::filesystem::path& folder);

/// By what the file is: .json, .model, .gguf or .bin. A .bin does not know its number of tokens: `vocab` is the
/// model's.
Result<std::shared_ptr<const Tokenizer>> open_tokenizer_file(const std::filesystem::path& path,
                                                             std::optional<int> vocab);

}  // namespace kvasir
