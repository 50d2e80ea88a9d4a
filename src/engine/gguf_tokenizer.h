// The tokenizer inside a GGUF file: from its metadata to what src/token understands.
#pragma once

#include <filesystem>
#include <memory>

#include <kvasir/result.h>
#include <kvasir/tokenizer.h>

#include "format/gguf.h"

namespace kvasir {

bool has_tokenizer(const GgufMetadata& metadata);

/// Errors: what the metadata says wrongly or Kvasir does not know, by its name.
Result<std::shared_ptr<const Tokenizer>> open_gguf_tokenizer(const std::filesystem::path& path);

}  // namespace kvasir
