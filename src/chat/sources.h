// Where a model's files keep its chat template, and the texts of its special tokens.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <kvasir/result.h>

namespace kvasir {

struct ChatSources {
  std::optional<std::string> jinja;                            ///< the one named "default", or the only one
  std::optional<std::string> for_tools;                        ///< the one named "tool_use"
  std::vector<std::pair<std::string, std::string>> variables;  ///< "bos_token", "<s>"
};

/// A Hugging Face folder or a .gguf. Errors: a file that cannot be read.
Result<ChatSources> read_chat_sources(const std::filesystem::path& path);

}  // namespace kvasir
