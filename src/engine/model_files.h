// Which files belong to a model, and in what format. Every format becomes a Hugging Face configuration and tensors with
// Hugging Face names. Weights are not loaded here, but by Model::open().
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
  ConfigView config;                      ///< the language model's
  std::optional<ConfigView> config_file;  ///< the whole config.json; absent in formats that have none
  std::optional<ConfigView> generation;   ///< generation_config.json, or the sampling that a GGUF file recommends
  TensorDir tensors;
  std::filesystem::path tokenizer;  ///< for open_tokenizer_file(); empty: none found
  std::vector<Ignored> ignored;     ///< found while reading the format, not used
};

/// A model as its files describe it.
struct ModelDescription {
  const Family* family = nullptr;
  ModelConfig config;
  SamplingParams sampling;
  std::vector<Ignored> ignored;  ///< without the tokenizer's
};

/// `path`: a Hugging Face folder, a GGUF file of any name, or a llama2.c .bin.
Result<ModelFiles> read_model_files(const std::filesystem::path& path);

/// Reads the family, the configuration and the sampling defaults. End-of-text ids of generation_config.json take
/// precedence. Errors: a family, a number or a key that is not supported; a tensor that is missing, has another shape,
/// or is not used by the family.
Result<ModelDescription> describe_model(const ModelFiles& files, const std::string& where);
/// describe_model() for a config.json alone.
Result<ModelDescription> describe_config(const ConfigView& file);

/// `folder` itself if it contains a tokenizer, otherwise empty.
std::filesystem::path tokenizer_in(const std::filesystem::path& folder);

/// The file with the vocabulary, for a path that open_tokenizer_file() takes.
std::filesystem::path vocabulary_file(const std::filesystem::path& path);

/// Opens a tokenizer: a folder, all of whose files count, or a single file: GGUF, .json, .model or .bin. `vocab`: the
/// model's number of tokens, which a .bin lacks.
Result<std::shared_ptr<const Tokenizer>> open_tokenizer_file(const std::filesystem::path& path,
                                                             std::optional<int> vocab);

}  // namespace kvasir
