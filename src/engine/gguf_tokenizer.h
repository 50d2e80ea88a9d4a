// The tokenizer inside a GGUF file: from its metadata to what src/token understands.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include <kvasir/result.h>
#include <kvasir/tokenizer.h>

#include "format/gguf.h"

namespace kvasir {

bool has_tokenizer(const GgufMetadata& metadata);

/// Keys under "tokenizer." that no reader uses. Errors: one that changes ids, or that is not known.
Result<std::vector<Ignored>> unused_tokenizer_keys(const GgufMetadata& metadata);

/// Errors: what the metadata says wrongly or Kvasir does not know, by its name.
Result<std::shared_ptr<const Tokenizer>> open_gguf_tokenizer(const std::filesystem::path& path);

}  // namespace kvasir
