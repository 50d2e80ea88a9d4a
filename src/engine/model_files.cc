// Telling formats apart by what the path is, and finding what lies beside it.
#include "engine/model_files.h"

#include <array>

#include <fmt/format.h>

#include "arch/gguf.h"
#include "engine/gguf_tokenizer.h"
#include "format/llama2c.h"
#include "format/safetensors.h"

namespace kvasir {
namespace fs = std::filesystem;

namespace {

Result<ModelFiles> read_folder(const fs::path& folder) {
  ModelFiles files{.format = "safetensors", .config = {}, .generation = {}, .tensors = {}, .tokenizer = {}};
  KVASIR_TRY(const ConfigView config, ConfigView::read(folder / "config.json"));
  files.config = text_config(config);
  KVASIR_TRY(files.tensors, open_safetensors(folder));
  std::error_code ec;
  if (fs::exists(folder / "generation_config.json", ec)) {
    KVASIR_TRY(files.generation, ConfigView::read(folder / "generation_config.json"));
  }
  files.tokenizer = tokenizer_in(folder);
  return files;
}

Result<ModelFiles> read_gguf(const fs::path& path) {
  KVASIR_TRY(GgufFile file, open_gguf(path));
  const std::string format = fmt::format("GGUF v{}", file.version);
  const bool tokenizer = has_tokenizer(file.metadata);
  KVASIR_TRY(GgufModel model, read_gguf_model(std::move(file), path.string()));
  return ModelFiles{format, std::move(model.config), {}, std::move(model.tensors), tokenizer ? path : fs::path()};
}

// llama2.c keeps its tokenizer in a file of its own: tokenizer.bin, or tokN.bin for a vocabulary of N.
Result<ModelFiles> read_llama2c(const fs::path& path) {
  KVASIR_TRY(auto file, open_llama2c(path));
  ModelFiles files{"llama2.c", std::move(file.config), {}, std::move(file.tensors), {}};
  KVASIR_TRY(const int64_t vocab, files.config.get_int("vocab_size", 1, 1 << 24));
  std::error_code ec;
  for (const std::string& name : {fmt::format("tok{}.bin", vocab), std::string("tokenizer.bin")})
    if (fs::exists(path.parent_path() / name, ec)) files.tokenizer = path.parent_path() / name;
  return files;
}

}  // namespace

Result<ModelFiles> read_model_files(const fs::path& path) {
  std::error_code ec;
  if (fs::is_directory(path, ec)) return read_folder(path);
  if (path.extension() == ".gguf") return read_gguf(path);
  if (path.extension() == ".bin") return read_llama2c(path);
  return fail("not a model that Kvasir can open", path.string(), "a Hugging Face folder, a .gguf, or a llama2.c .bin");
}

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

fs::path tokenizer_in(const fs::path& folder) {
  std::error_code ec;
  for (const char* name : {"tokenizer.json", "tokenizer.model"})
    if (fs::exists(folder / name, ec)) return folder / name;
  return {};
}

Result<std::shared_ptr<const Tokenizer>> open_tokenizer_file(const fs::path& path, std::optional<int> vocab) {
  const fs::path extension = path.extension();
  if (extension == ".json") return Tokenizer::from_json(path);
  // Mistral's are called tokenizer.model.v3 and the like.
  if (path.filename().string().find(".model") != std::string::npos) return Tokenizer::from_sentencepiece(path);
  if (extension == ".gguf") return open_gguf_tokenizer(path);
  if (extension != ".bin")
    return fail("not a tokenizer that Kvasir can read", path.string(),
                "a tokenizer.json, a tokenizer.model, a .gguf, or llama2.c's tokenizer.bin");
  if (!vocab)
    return fail("a tokenizer.bin does not say how many tokens it has", path.string(),
                "name the model, and this file with --tokenizer");
  return Tokenizer::from_llama2c(path, *vocab);
}

}  // namespace kvasir
