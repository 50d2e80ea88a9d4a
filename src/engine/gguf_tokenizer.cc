// Source of the keys: ggml-org/ggml docs/gguf.md, "Tokenizer".
#include "engine/gguf_tokenizer.h"

#include <fmt/format.h>

#include "token/gguf_vocab.h"

namespace kvasir {
namespace {

std::string key(std::string_view name) { return fmt::format("tokenizer.ggml.{}", name); }

Result<std::vector<std::string_view>> strings(const GgufMetadata& metadata, std::string_view name, bool needed) {
  const GgufValue* value = metadata.find(key(name));
  if (value == nullptr && !needed) return std::vector<std::string_view>();
  if (value == nullptr || value->type != GgufType::array || value->element != GgufType::string)
    return fail(fmt::format("{} is no list of strings", key(name)));
  return value->strings;
}

Result<std::vector<double>> numbers(const GgufMetadata& metadata, std::string_view name) {
  const GgufValue* value = metadata.find(key(name));
  if (value == nullptr) return std::vector<double>();
  auto list = value->as_numbers();
  if (!list) return fail(fmt::format("{} is no list of numbers", key(name)));
  return std::move(*list);
}

Result<std::optional<int>> id(const GgufMetadata& metadata, std::string_view name) {
  KVASIR_TRY(const auto value, metadata.get_int(key(name)));
  if (!value) return std::nullopt;
  if (*value < 0 || *value > INT32_MAX) return fail(fmt::format("{} is {}, which is no token", key(name), *value));
  return static_cast<int>(*value);
}

Result<GgufVocab> read_vocab(const GgufMetadata& metadata) {
  GgufVocab vocab;
  KVASIR_TRY(const auto model, metadata.get_string(key("model")));
  KVASIR_TRY(const auto pre, metadata.get_string(key("pre")));
  if (!model) return fail("tokenizer.ggml.model is missing", {}, "a GGUF file that holds a tokenizer");
  KVASIR_TRY(const auto arch, metadata.get_string("general.architecture"));
  vocab.arch = arch.value_or("");
  vocab.model = *model;
  vocab.pre = pre.value_or("");
  KVASIR_TRY(vocab.tokens, strings(metadata, "tokens", true));
  KVASIR_TRY(vocab.merges, strings(metadata, "merges", false));
  KVASIR_TRY(const auto scores, numbers(metadata, "scores"));
  for (double score : scores) vocab.scores.push_back(static_cast<float>(score));
  KVASIR_TRY(const auto types, numbers(metadata, "token_type"));
  for (double type : types) {
    if (!(type >= 0 && type <= 255)) return fail(fmt::format("tokenizer.ggml.token_type holds {}", type));
    vocab.types.push_back(static_cast<std::int32_t>(type));
  }
  KVASIR_TRY(vocab.bos, id(metadata, "bos_token_id"));
  KVASIR_TRY(vocab.eos, id(metadata, "eos_token_id"));
  KVASIR_TRY(vocab.eot, id(metadata, "eot_token_id"));
  KVASIR_TRY(vocab.unk, id(metadata, "unknown_token_id"));
  KVASIR_TRY(vocab.add_bos, metadata.get_bool(key("add_bos_token")));
  KVASIR_TRY(vocab.add_space_prefix, metadata.get_bool(key("add_space_prefix")));
  return vocab;
}

Result<std::unique_ptr<const TokenModel>> read_model(const GgufMetadata& metadata) {
  KVASIR_TRY(const GgufVocab vocab, read_vocab(metadata));
  KVASIR_TRY(auto model, make_gguf_tokenizer(vocab));
  // None at all is a vocabulary of bytes, but the file has to say so.
  if (vocab.model == "gpt2" && metadata.find(key("merges")) == nullptr)
    return fail(fmt::format("{} is missing", key("merges")), {}, "a GGUF file that holds a tokenizer");
  return model;
}

}  // namespace

bool has_tokenizer(const GgufMetadata& metadata) { return metadata.find(key("tokens")) != nullptr; }

Result<std::shared_ptr<const Tokenizer>> open_gguf_tokenizer(const std::filesystem::path& path) {
  KVASIR_TRY(const GgufFile file, open_gguf(path));
  auto model = read_model(file.metadata);
  if (!model) return fail(model.error().what, path.string(), model.error().hint);
  return Tokenizer::from_model(std::move(*model));
}

}  // namespace kvasir
