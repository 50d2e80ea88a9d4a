// File names in Hugging Face folders, and the choice of the weights among them.
#include "hub/choose.h"

#include <algorithm>
#include <array>

namespace kvasir::hub {
namespace {

constexpr std::array kBeside{"generation_config.json",  "tokenizer.json",    "tokenizer.model", "tokenizer_config.json",
                             "special_tokens_map.json", "added_tokens.json", "vocab.json",      "merges.txt",
                             "chat_template.jinja",     "chat_template.json"};
constexpr const char* kConfig = "config.json";
constexpr const char* kIndex = "model.safetensors.index.json";
constexpr const char* kWhole = "model.safetensors";

bool is_part_of_model(std::string_view name) {  // model-00001-of-00004.safetensors
  return name.starts_with("model-") && name.ends_with(".safetensors") && name.find("of-") != name.npos &&
         name.find('/') == name.npos;
}

bool is_some_model(std::string_view name) {
  return name.starts_with("model") && name.ends_with(".safetensors") && name.find('/') == name.npos;
}

bool is_template(std::string_view name) { return name.starts_with("additional_chat_templates/"); }

bool has(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

std::vector<std::string> those(const std::vector<std::string>& names, bool (*fits)(std::string_view)) {
  std::vector<std::string> out;
  std::ranges::copy_if(names, std::back_inserter(out), fits);
  return out;
}

// Leaves out files that hold the same weights again, such as model.fp16.safetensors.
std::vector<std::string> weights(const std::vector<std::string>& names) {
  if (has(names, kIndex))
    if (auto parts = those(names, is_part_of_model); !parts.empty()) {
      parts.emplace_back(kIndex);
      return parts;
    }
  if (has(names, kWhole)) return {kWhole};
  return those(names, is_some_model);
}

std::vector<std::string> folder_files(const std::vector<std::string>& names) {
  std::vector<std::string> out;
  for (const char* name : kBeside)
    if (has(names, name)) out.emplace_back(name);
  for (std::string& name : those(names, is_template)) out.push_back(std::move(name));
  for (std::string& name : weights(names)) out.push_back(std::move(name));
  out.emplace_back(kConfig);
  return out;
}

}  // namespace

Result<std::vector<RemoteFile>> choose_files(const Listing& listing, const Wanted& wanted) {
  std::vector<std::string> names, chosen;
  for (const RemoteFile& file : listing.files) names.push_back(file.name);
  std::ranges::sort(names);
  if (wanted.what.empty() && has(names, kConfig) && !weights(names).empty()) {
    chosen = folder_files(names);
  } else {
    auto gguf = choose_gguf(names, wanted.what, wanted.text());
    const bool some = std::ranges::any_of(names, [](const std::string& name) { return name.ends_with(".gguf"); });
    if (!some && wanted.what.empty())
      return fail(Error::not_found, "it holds neither config.json with model*.safetensors nor a GGUF file",
                  wanted.text(), "another repository, or OWNER/NAME:FILE");
    KVASIR_TRY(chosen, std::move(gguf));
    std::ranges::reverse(chosen);
  }
  std::vector<RemoteFile> out;
  for (const std::string& name : chosen) out.push_back(*std::ranges::find(listing.files, name, &RemoteFile::name));
  return out;
}

}  // namespace kvasir::hub
