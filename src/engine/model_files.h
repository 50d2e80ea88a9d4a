// Which files belong to a model and in what format they are: all of them end as a Hugging Face configuration and
// tensors under Hugging Face's names. Nothing is loaded here; model.h does that.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <kvasir/model.h>
#include <kvasir/result.h>
#include <kvasir/tokenizer.h>

#include "arch/family.h"
#include "format/config_view.h"
#include "format/tensor_file.h"

namespace kvasir {

struct ModelFiles {
  std::string format;                     ///< "safetensors", "GGUF v3", "llama2.c"
  ConfigView config;                      ///< of the language model
  std::optional<ConfigView> config_file;  ///< the whole config.json; absent in formats that have none
  std::optional<ConfigView> generation;   ///< generation_config.json, or the sampling that a GGUF file recommends
  TensorDir tensors;
  std::filesystem::path tokenizer;  ///< for open_tokenizer_file(); empty: none found
  std::vector<Ignored> ignored;     ///< what reading the format found and does not use
};

/// A model as its files describe it.
struct ModelDescription {
  const Family* family = nullptr;
  ModelConfig config;
  SamplingParams sampling;
  std::vector<Ignored> ignored;  ///< the tokenizer's not included
};

/// A Hugging Face folder, a GGUF file whatever its name, or a llama2.c .bin.
Result<ModelFiles> read_model_files(const std::filesystem::path& path);

/// The family, the numbers, the sampling. The end-of-text ids of generation_config.json win. Errors: a family, a number
/// or a key that is not supported; a tensor that is missing, has another shape, or that the family does not use.
Result<ModelDescription> describe_model(const ModelFiles& files, const std::string& where);
/// The same from a config.json alone.
Result<ModelDescription> describe_config(const ConfigView& file);

/// The folder itself, where it holds a tokenizer; else empty.
std::filesystem::path tokenizer_in(const std::filesystem::path& folder);

/// The file with the vocabulary, of what open_tokenizer_file() takes.
std::filesystem::path vocabulary_file(const std::filesystem::path& path);

/// By what it is: a folder, with all that its files say together, or one file read alone: GGUF, .json, .model or .bin.
/// A .bin does not know its number of tokens: `vocab` is the model's.
Result<std::shared_ptr<const Tokenizer>> open_tokenizer_file(const std::filesystem::path& path,
                                                             std::optional<int> vocab);

}  // namespace kvasir
