// Settings of a Hugging Face folder's tokenizer beside tokenizer.json or tokenizer.model: tokenizer_config.json,
// added_tokens.json, special_tokens_map.json. What it comes to is folder_tokenizer.cc's.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <kvasir/result.h>
#include <kvasir/tokenizer.h>

#include "token/added_tokens.h"

namespace kvasir {

struct FolderSettings {
  struct Declared {
    AddedToken token;        ///< id -1: one of the vocabulary's, named for its role
    std::string where;       ///< "tokenizer_config.json: added_tokens_decoder"
    bool has_flags = false;  ///< they win over those that the tokenizer's file gives the token
  };
  std::vector<Declared> tokens;  ///< those with ids first
  std::optional<bool> add_bos, add_eos, add_prefix_space, legacy;
  std::optional<std::string> bos;  ///< the text of bos_token
  std::vector<Ignored> ignored;
};

/// Files that are absent say nothing. Errors: JSON that is wrong, values of another type, and keys that change ids in a
/// way that Kvasir does not know, each by file and key.
Result<FolderSettings> read_folder_settings(const std::filesystem::path& folder);

}  // namespace kvasir
