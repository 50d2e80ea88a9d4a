// Reads chat templates from files. Source of the names: huggingface/transformers tokenization_utils_base.py
// (chat_template, chat_template.jinja, additional_chat_templates), ggml-org/llama.cpp gguf-py constants.py.
#include "chat/sources.h"

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "format/gguf.h"

namespace kvasir {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr size_t kMostFileBytes = size_t{64} << 20;
constexpr const char* kRoles[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                  "pad_token", "cls_token", "mask_token"};

Result<Json> object_of(const fs::path& path) {
  if (!is_there(path)) return Json::object();
  KVASIR_TRY(const std::string bytes, read_text_file(path, kMostFileBytes));
  Json json = Json::parse(bytes, nullptr, false);
  if (!json.is_object()) return fail(Error::damaged, "not a JSON object", path.string(), "fetch the file again");
  return json;
}

// "chat_template" is one template, or a list of named templates.
void take_templates(const Json& config, ChatSources* sources) {
  const auto at = config.find("chat_template");
  if (at == config.end()) return;
  if (at->is_string()) sources->jinja = at->get<std::string>();
  if (!at->is_array()) return;
  for (const Json& one : *at) {
    if (!one.is_object() || !one.contains("name") || !one.contains("template")) continue;
    if (!one["name"].is_string() || !one["template"].is_string()) continue;
    const std::string name = one["name"];
    if (name == "default" || at->size() == 1) sources->jinja = one["template"].get<std::string>();
    if (name == "tool_use") sources->for_tools = one["template"].get<std::string>();
  }
}

// A token is a string, or an object with the string as "content".
void take_tokens(const Json& config, ChatSources* sources) {
  for (const char* role : kRoles) {
    const auto at = config.find(role);
    if (at == config.end()) continue;
    const Json& text = at->is_object() && at->contains("content") ? (*at)["content"] : *at;
    if (text.is_string()) sources->variables.emplace_back(role, text.get<std::string>());
  }
}

Result<ChatSources> of_folder(const fs::path& folder) {
  ChatSources sources;
  KVASIR_TRY(const Json config, object_of(folder / "tokenizer_config.json"));
  take_templates(config, &sources);
  take_tokens(config, &sources);
  if (sources.variables.empty()) {
    KVASIR_TRY(const Json map, object_of(folder / "special_tokens_map.json"));
    take_tokens(map, &sources);
  }
  if (const fs::path file = folder / "chat_template.jinja"; is_there(file)) {
    KVASIR_TRY(sources.jinja, read_text_file(file, kMostFileBytes));
  } else if (const fs::path json = folder / "chat_template.json"; is_there(json)) {
    KVASIR_TRY(const Json object, object_of(json));
    take_templates(object, &sources);
  }
  if (const fs::path file = folder / "additional_chat_templates" / "tool_use.jinja"; is_there(file)) {
    KVASIR_TRY(sources.for_tools, read_text_file(file, kMostFileBytes));
  }
  return sources;
}

Result<ChatSources> of_gguf(const fs::path& path) {
  KVASIR_TRY(const GgufFile file, open_gguf(path));
  ChatSources sources;
  const auto text = [&](const char* key) -> std::optional<std::string> {
    const auto found = file.metadata.get_string(key);
    return found && *found ? std::optional<std::string>(**found) : std::nullopt;
  };
  sources.jinja = text("tokenizer.chat_template");
  if (!sources.jinja) sources.jinja = text("tokenizer.chat_template.default");
  sources.for_tools = text("tokenizer.chat_template.tool_use");
  const GgufValue* pieces = file.metadata.find("tokenizer.ggml.tokens");
  if (pieces == nullptr) return sources;
  for (const auto& [role, key] : {std::pair("bos_token", "bos"), std::pair("eos_token", "eos"),
                                  std::pair("unk_token", "unknown"), std::pair("pad_token", "padding")}) {
    const auto id = file.metadata.get_int(std::string("tokenizer.ggml.") + key + "_token_id");
    if (id && *id && **id >= 0 && static_cast<size_t>(**id) < pieces->strings.size())
      sources.variables.emplace_back(role, std::string(pieces->strings[static_cast<size_t>(**id)]));
  }
  return sources;
}

}  // namespace

Result<ChatSources> read_chat_sources(const fs::path& path) {
  if (fs::is_directory(path)) return of_folder(path);
  if (path.extension() == ".gguf") return of_gguf(path);
  return ChatSources{};
}

}  // namespace kvasir
