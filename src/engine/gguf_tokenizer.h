// The tokenizer inside a GGUF file: from its metadata to the structures of src/token.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include <kvasir/result.h>
#include <kvasir/tokenizer.h>

#include "format/gguf.h"

namespace kvasir {

bool has_tokenizer(const GgufMetadata& metadata);

/// Keys under "tokenizer." that no reader uses. Errors: a key that changes ids, or is unknown and might.
Result<std::vector<Ignored>> unused_tokenizer_keys(const GgufMetadata& metadata);

/// Errors: metadata that is wrong or not supported, with the key's name.
Result<std::shared_ptr<const Tokenizer>> open_gguf_tokenizer(const std::filesystem::path& path);

}  // namespace kvasir
