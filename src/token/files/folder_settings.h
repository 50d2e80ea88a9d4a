// Reads the settings that lie beside tokenizer.json or tokenizer.model in a Hugging Face folder: tokenizer_config.json,
// added_tokens.json, special_tokens_map.json. folder_tokenizer.cc applies them.
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
    AddedToken token;        ///< id -1: a token of the vocabulary, named by its role
    std::string where;       ///< "tokenizer_config.json: added_tokens_decoder"
    bool has_flags = false;  ///< its flags override those in the tokenizer's file
  };
  std::vector<Declared> tokens;  ///< tokens with ids come first
  std::optional<bool> add_bos, add_eos, add_prefix_space, legacy;
  std::optional<std::string> bos;  ///< the text of bos_token
  std::vector<Ignored> ignored;
};

/// Skips absent files. Errors, naming file and key: invalid JSON, values of the wrong type, and keys that change ids in
/// a way that Kvasir does not support.
Result<FolderSettings> read_folder_settings(const std::filesystem::path& folder);

}  // namespace kvasir
