// Finds the chat template in a model's files, and the texts of its special tokens.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <kvasir/result.h>

namespace kvasir {

struct ChatSources {
  std::optional<std::string> jinja;                            ///< the template named "default", or the only one
  std::optional<std::string> for_tools;                        ///< the template named "tool_use"
  std::vector<std::pair<std::string, std::string>> variables;  ///< such as {"bos_token", "<s>"}
};

/// Reads a Hugging Face folder or a .gguf file; any other path gives empty sources. Errors: a file cannot be read or is
/// not a JSON object.
Result<ChatSources> read_chat_sources(const std::filesystem::path& path);

}  // namespace kvasir
