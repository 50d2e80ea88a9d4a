// llama2.c checkpoints (.bin): the legacy file without a magic number (v0) and "ak42" version 1, both f32. Presents
// them with the configuration keys and tensor names of a Hugging Face Llama.
#pragma once

#include <filesystem>

#include <kvasir/result.h>

#include "format/config_view.h"
#include "format/tensor_file.h"

namespace kvasir {

struct Llama2cFile {
  ConfigView config;  ///< Hugging Face keys, with "rope_interleaved": true since q and k hold their pairs side by side
  TensorDir tensors;
};

/// Fails if a header field is out of range or the file does not have exactly the bytes that the header implies.
Result<Llama2cFile> open_llama2c(const std::filesystem::path& path);

}  // namespace kvasir
