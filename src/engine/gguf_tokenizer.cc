// Reads the tokenizer's keys of a GGUF file. Source of the keys: ggml-org/ggml docs/gguf.md, "Tokenizer".
#include "engine/gguf_tokenizer.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "arch/family.h"
#include "token/files/gguf_vocab.h"
#include "token/tokenizer_impl.h"

namespace kvasir {
namespace {

std::string key(std::string_view name) { return fmt::format("tokenizer.ggml.{}", name); }

Result<std::vector<std::string_view>> strings(const GgufMetadata& metadata, std::string_view name, bool needed) {
  const GgufValue* value = metadata.find(key(name));
  if (value == nullptr && !needed) return std::vector<std::string_view>();
  if (value == nullptr || value->type != GgufType::array || value->element != GgufType::string)
    return fail(Error::damaged, fmt::format("{} is no list of strings", key(name)));
  return value->strings;
}

Result<std::vector<double>> numbers(const GgufMetadata& metadata, std::string_view name) {
  const GgufValue* value = metadata.find(key(name));
  if (value == nullptr) return std::vector<double>();
  auto list = value->as_numbers();
  if (!list) return fail(Error::damaged, fmt::format("{} is no list of numbers", key(name)));
  return std::move(*list);
}

// ---- unused keys --------------------------------------------------------------------------------------------------

// Source of the keys: ggml-org/llama.cpp gguf-py/gguf/constants.py and src/llama-vocab.cpp. arch/gguf.cc reads the ids
// of the tokens that end a text.
constexpr std::string_view kUsed[] = {"model",
                                      "pre",
                                      "tokens",
                                      "scores",
                                      "token_type",
                                      "merges",
                                      "bos_token_id",
                                      "eos_token_id",
                                      "eot_token_id",
                                      "eom_token_id",
                                      "unknown_token_id",
                                      "add_bos_token",
                                      "add_space_prefix",
                                      "fim_pad_token_id",
                                      "fim_rep_token_id",
                                      "fim_sep_token_id"};

struct Known {
  std::string_view name, why;
};
constexpr Known kHarmless[] = {
    {"separator_token_id", "no token is put between texts"},
    {"padding_token_id", "texts are not padded"},
    {"seperator_token_id", "no token is put between texts"},
    {"mask_token_id", "nothing is masked"},
    {"cls_token_id", "for classifiers"},
    {"token_type_count", "for encoders"},
    {"fim_pre_token_id", "fill-in-the-middle is not used"},
    {"fim_suf_token_id", "fill-in-the-middle is not used"},
    {"fim_mid_token_id", "fill-in-the-middle is not used"},
    {"prefix_token_id", "fill-in-the-middle is not used"},
    {"suffix_token_id", "fill-in-the-middle is not used"},
    {"middle_token_id", "fill-in-the-middle is not used"},
};

// When set, these change token ids, or which tokens may be chosen.
constexpr Known kRefused[] = {
    {"add_eos_token", "a token after the text would end a prompt that is to be continued"},
    {"add_sep_token", "a token after the text would end a prompt that is to be continued"},
    {"remove_extra_whitespaces", "texts are taken as they are"},
    {"precompiled_charsmap", "texts are taken as they are"},
    {"normalizer.lowercase", "texts are taken as they are"},
    {"normalizer.strip_accents", "texts are taken as they are"},
    {"escape_whitespaces", "the type of tokenizer decides how spaces are written"},
    {"suppress_tokens", "every token may be chosen"},
};

bool is_set(const GgufValue& value) {
  if (value.type == GgufType::array) return value.count > 0;
  if (const auto flag = value.as_bool()) return *flag;
  return value.as_int() != 0;
}

constexpr std::string_view kIdEnding = "_token_id";

// Files write -1, in any integer type, for a token that does not exist.
bool means_none(const GgufValue& value) {
  const auto number = value.as_int();
  return number && (*number == -1 || *number == INT64_C(0xffffffff));
}

Result<void> consider(std::string_view name, const GgufValue& value, std::vector<Ignored>& ignored) {
  const auto is = [name](const Known& one) { return one.name == name; };
  if (name.ends_with(kIdEnding) && means_none(value)) {
    ignored.push_back({key(name), "-1 is no token", true});
    return {};
  }
  if (std::find(std::begin(kUsed), std::end(kUsed), name) != std::end(kUsed)) return {};
  if (const auto it = std::find_if(std::begin(kRefused), std::end(kRefused), is); it != std::end(kRefused)) {
    if (!is_set(value)) return {};
    return fail(Error::unsupported, fmt::format("{} is set, which is not supported: {}", key(name), it->why), {},
                "another file of the same vocabulary as ModelOptions::tokenizer");
  }
  const auto it = std::find_if(std::begin(kHarmless), std::end(kHarmless), is);
  if (it == std::end(kHarmless))
    return fail(Error::unsupported, fmt::format("{} is not known, and may change ids", key(name)), {},
                "another file of the same vocabulary as ModelOptions::tokenizer");
  ignored.push_back({key(name), std::string(it->why), false});
  return {};
}

// ---- used keys ----------------------------------------------------------------------------------------------------

Result<std::optional<int>> id(const GgufMetadata& metadata, std::string_view name) {
  const GgufValue* there = metadata.find(key(name));
  if (there != nullptr && means_none(*there)) return std::nullopt;
  KVASIR_TRY(const auto value, metadata.get_int(key(name)));
  if (!value) return std::nullopt;
  if (*value < 0 || *value > INT32_MAX)
    return fail(Error::damaged, fmt::format("{} is {}, which is no token", key(name), *value));
  return static_cast<int>(*value);
}

Result<GgufVocab> read_vocab(const GgufMetadata& metadata) {
  GgufVocab vocab;
  KVASIR_TRY(const auto model, metadata.get_string(key("model")));
  KVASIR_TRY(const auto pre, metadata.get_string(key("pre")));
  if (!model) return fail(Error::damaged, "tokenizer.ggml.model is missing", {}, "a GGUF file that holds a tokenizer");
  KVASIR_TRY(const auto arch, metadata.get_string("general.architecture"));
  if (const GgufNames* names = find_gguf_names(arch.value_or(""))) vocab.rstrip_but = names->rstrip_but;
  vocab.model = *model;
  vocab.pre = pre.value_or("");
  KVASIR_TRY(vocab.tokens, strings(metadata, "tokens", true));
  KVASIR_TRY(vocab.merges, strings(metadata, "merges", false));
  KVASIR_TRY(const auto scores, numbers(metadata, "scores"));
  for (double score : scores) vocab.scores.push_back(static_cast<float>(score));
  KVASIR_TRY(const auto types, numbers(metadata, "token_type"));
  for (double type : types) {
    if (!(type >= 0 && type <= 255))
      return fail(Error::damaged, fmt::format("tokenizer.ggml.token_type holds {}", type));
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
  // An empty list of merges means a vocabulary of bytes, but the key must be there.
  if (vocab.model != kGgufSentencePiece && metadata.find(key("merges")) == nullptr)
    return fail(Error::damaged, fmt::format("{} is missing", key("merges")), {}, "a GGUF file that holds a tokenizer");
  return model;
}

}  // namespace

Result<std::vector<Ignored>> unused_tokenizer_keys(const GgufMetadata& metadata) {
  constexpr std::string_view kAll = "tokenizer.", kGgml = "tokenizer.ggml.";
  std::vector<Ignored> ignored;
  for (const auto& [name, value] : metadata.entries) {
    const std::string_view text = name;
    if (text.starts_with(kGgml)) {
      KVASIR_CHECK(consider(text.substr(kGgml.size()), value, ignored));
    } else if (text == "tokenizer.chat_template" || text == "tokenizer.chat_template.default" ||
               text == "tokenizer.chat_template.tool_use") {
      // src/chat reads these
    } else if (text.starts_with("tokenizer.chat_template")) {
      ignored.push_back({std::string(text), "a chat template of another name", false});
    } else if (text == "tokenizer.huggingface.json" || text == "tokenizer.rwkv.world") {
      ignored.push_back({std::string(text), "tokenizer.ggml has the same", false});
    } else if (text.starts_with(kAll)) {
      ignored.push_back({std::string(text), "not known to Kvasir", true});
    }
  }
  return ignored;
}

bool has_tokenizer(const GgufMetadata& metadata) { return metadata.find(key("tokens")) != nullptr; }

Result<std::shared_ptr<const Tokenizer>> open_gguf_tokenizer(const std::filesystem::path& path) {
  KVASIR_TRY(const GgufFile file, open_gguf(path));
  const auto read = [&]() -> Result<std::shared_ptr<const Tokenizer>> {
    KVASIR_TRY(std::unique_ptr<const TokenModel> model, read_model(file.metadata));
    KVASIR_TRY(std::vector<Ignored> ignored, unused_tokenizer_keys(file.metadata));
    KVASIR_TRY(const auto eot, id(file.metadata, "eot_token_id"));
    return make_tokenizer(std::move(model), std::move(ignored), eot.has_value());
  };
  auto tokenizer = read();
  if (!tokenizer) return fail(tokenizer.error().kind, tokenizer.error().what, path.string(), tokenizer.error().hint);
  return tokenizer;
}

}  // namespace kvasir
