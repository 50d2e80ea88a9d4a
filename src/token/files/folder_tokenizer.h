// The tokenizer of a Hugging Face folder: one file with the vocabulary, and the settings in the files beside it.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include <kvasir/result.h>
#include <kvasir/tokenizer.h>

#include "token/model.h"

namespace kvasir {

struct FolderTokenizer {
  std::unique_ptr<const TokenModel> model;
  std::vector<Ignored> ignored;
};

/// Errors: no tokenizer in the folder; files that are wrong or contradict each other.
Result<FolderTokenizer> read_folder_tokenizer(const std::filesystem::path& folder);

}  // namespace kvasir
