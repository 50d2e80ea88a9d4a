// Recognising a model's format from its path, and finding the files beside it.
#include "engine/model_files.h"

#include <array>
#include <iterator>

#include <fmt/format.h>

#include "arch/gguf.h"
#include "arch/unused.h"
#include "engine/gguf_tokenizer.h"
#include "format/llama2c.h"
#include "format/safetensors.h"

namespace kvasir {
namespace fs = std::filesystem;

namespace {

void append(std::vector<Ignored> more, std::vector<Ignored>* to) {
  to->insert(to->end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

Result<ModelFiles> read_folder(const fs::path& folder) {
  ModelFiles files;
  files.format = "safetensors";
  KVASIR_TRY(files.config_file, ConfigView::read(folder / "config.json"));
  files.config = text_config(*files.config_file);
  if (is_there(folder / "adapter_config.json"))
    return fail(Error::unsupported, "adapters (adapter_config.json) are not supported", folder.string(),
                "the merged model");
  KVASIR_TRY(files.tensors, open_safetensors(folder));
  if (const auto family = find_family(files.config))
    KVASIR_CHECK(split_tensors((*family)->splits, &files.tensors, folder.string()));
  if (is_there(folder / "generation_config.json")) {
    KVASIR_TRY(files.generation, ConfigView::read(folder / "generation_config.json"));
  }
  files.tokenizer = tokenizer_in(folder);
  return files;
}

Result<ModelFiles> read_gguf(const fs::path& path) {
  KVASIR_TRY(GgufFile file, open_gguf(path));
  const std::string format = fmt::format("GGUF v{}", file.version);
  const bool tokenizer = has_tokenizer(file.metadata);
  std::vector<Ignored> ignored;  // a tokenizer lists its own
  if (!tokenizer) {
    KVASIR_TRY(ignored, unused_tokenizer_keys(file.metadata));
  }
  KVASIR_TRY(GgufModel model, read_gguf_model(std::move(file), path.string()));
  append(std::move(ignored), &model.ignored);
  return ModelFiles{.format = format,
                    .config = std::move(model.config),
                    .config_file = {},
                    .generation = std::move(model.sampling),
                    .tensors = std::move(model.tensors),
                    .tokenizer = tokenizer ? path : fs::path(),
                    .ignored = std::move(model.ignored)};
}

// llama2.c has its tokenizer in a separate file: tokenizer.bin, or tokN.bin for a vocabulary of N.
Result<ModelFiles> read_llama2c(const fs::path& path) {
  KVASIR_TRY(auto file, open_llama2c(path));
  ModelFiles files;
  files.format = "llama2.c";
  files.config = std::move(file.config);
  files.tensors = std::move(file.tensors);
  KVASIR_TRY(const int64_t vocab, files.config.get_int("vocab_size", 1, 1 << 24));
  for (const std::string& name : {fmt::format("tok{}.bin", vocab), std::string("tokenizer.bin")})
    if (is_there(path.parent_path() / name)) files.tokenizer = path.parent_path() / name;
  return files;
}

}  // namespace

Result<ModelFiles> read_model_files(const fs::path& path) {
  std::error_code ec;
  if (fs::is_directory(path, ec)) return read_folder(path);
  if (is_gguf(path) || path.extension() == ".gguf") return read_gguf(path);
  if (path.extension() == ".bin") return read_llama2c(path);
  if (const auto file = InputFile::open(path); !file) return tl::unexpected(file.error());
  return fail(Error::unsupported, "not a model that Kvasir can open", path.string(),
              "a Hugging Face folder, a .gguf, or a llama2.c .bin");
}

namespace {

Result<ModelConfig> read_config(const Family& family, const ModelFiles& files) {
  KVASIR_TRY(ModelConfig config, family.parse_config(files.config));
  if (!files.generation) return config;
  config.eos.clear();
  const auto bos = config.bos;
  KVASIR_CHECK(parse_special_ids(*files.generation, &config));
  if (!config.bos) config.bos = bos;
  if (config.eos.empty()) KVASIR_CHECK(parse_special_ids(files.config, &config));
  KVASIR_CHECK(check_config(config, files.generation->where()));
  return config;
}

// Keys that generation_config.json lacks are off, as in the format's own defaults. Kvasir's defaults apply if there is
// no such file, and to keys that a GGUF file lacks.
Result<SamplingParams> read_sampling(const ConfigView& view) {
  KVASIR_TRY(const bool gguf, view.get_bool_or(kGgufSampling, false));
  SamplingParams p;
  if (!gguf) p = {.temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0};
  KVASIR_TRY(const bool sampled, view.get_bool_or("do_sample", false));
  KVASIR_TRY(p.temperature, view.get_number_or("temperature", p.temperature, 0.0, 100.0));
  KVASIR_TRY(const int64_t top_k, view.get_int_or("top_k", p.top_k, 0, 1 << 24));
  KVASIR_TRY(p.top_p, view.get_number_or("top_p", p.top_p, 0.0, 1.0));
  KVASIR_TRY(p.min_p, view.get_number_or("min_p", p.min_p, 0.0, 1.0));
  KVASIR_TRY(p.repeat_penalty, view.get_number_or("repetition_penalty", p.repeat_penalty, 0.01, 100.0));
  // As in transformers: over the whole text, the prompt included.
  KVASIR_TRY(const int64_t last_n, view.get_int_or(kGgufLastN, gguf ? p.repeat_last_n : -1, -1, 1 << 24));
  p.top_k = static_cast<int>(top_k);
  p.repeat_last_n = static_cast<int>(last_n);
  if (!sampled) p.temperature = 0;
  return p;
}

}  // namespace

Result<ModelDescription> describe_model(const ModelFiles& files, const std::string& where) {
  ModelDescription d;
  d.ignored = files.ignored;
  KVASIR_TRY(d.family, find_family(files.config));
  KVASIR_TRY(d.config, read_config(*d.family, files));
  if (files.generation) {
    KVASIR_TRY(d.sampling, read_sampling(*files.generation));
    append(unused_generation_keys(*files.generation), &d.ignored);
  }
  if (files.config_file) {
    KVASIR_TRY(auto keys, unused_config_keys(*files.config_file, d.family->quantization));
    append(std::move(keys), &d.ignored);
  }
  if (files.tensors.tensors.empty()) return d;
  KVASIR_TRY(auto tensors, unused_tensors(*d.family, d.config, files.tensors, where));
  append(std::move(tensors), &d.ignored);
  return d;
}

Result<ModelDescription> describe_config(const ConfigView& file) {
  ModelFiles files;
  files.config_file = file;
  files.config = text_config(file);
  return describe_model(files, file.where());
}

fs::path vocabulary_file(const fs::path& path) {
  for (const char* name : {"tokenizer.json", "tokenizer.model"})
    if (is_there(path / name)) return path / name;
  return path;
}

fs::path tokenizer_in(const fs::path& folder) { return vocabulary_file(folder) == folder ? fs::path() : folder; }

Result<std::shared_ptr<const Tokenizer>> open_tokenizer_file(const fs::path& path, std::optional<int> vocab) {
  if (auto dangling = dangling_link(path)) return tl::unexpected(std::move(*dangling));
  std::error_code ec;
  if (fs::is_directory(path, ec)) return Tokenizer::from_folder(path);
  const fs::path extension = path.extension();
  if (is_gguf(path) || extension == ".gguf") return open_gguf_tokenizer(path);
  if (extension == ".json") return Tokenizer::from_json(path);
  // Mistral's files are named tokenizer.model.v3 and the like.
  if (path.filename().string().find(".model") != std::string::npos) return Tokenizer::from_sentencepiece(path);
  if (extension != ".bin")
    return fail(Error::unsupported, "not a tokenizer that Kvasir can read", path.string(),
                "a tokenizer.json, a tokenizer.model, a .gguf, or llama2.c's tokenizer.bin");
  if (!vocab)
    return fail(Error::bad_argument, "a tokenizer.bin does not say how many tokens it has", path.string(),
                "the model, with this file as ModelOptions::tokenizer");
  return Tokenizer::from_llama2c(path, *vocab);
}

}  // namespace kvasir
