// The contents of a file: a model, whether Kvasir can run it or not, or a saved session.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <kvasir/result.h>
#include <kvasir/tokenizer.h>

namespace kvasir {

struct Inspection {
  struct Entry {
    std::string key;
    std::string type;   ///< as the file names it: "u32", "array of string"; empty for JSON, where the value shows it
    std::string value;  ///< as JSON; only the first elements of a long list
  };
  struct Tensor {
    std::string name, type;      ///< as in the file
    std::vector<int64_t> shape;  ///< slowest dimension first
    uint64_t bytes = 0;
    std::string file;
  };

  std::string path, format;
  std::vector<Entry> metadata;  ///< GGUF's metadata, or the keys of config.json, or of a llama2.c header
  std::vector<Tensor> tensors;  ///< in name order
  int64_t elements = 0;         ///< of all tensors
  uint64_t bytes = 0;           ///< of all tensors
  /// Model::fingerprint(); empty if the model cannot be opened, for the reason in `reason`.
  std::string fingerprint, reason;
  std::vector<Ignored> ignored;  ///< parts that Kvasir does not use, if it can open the model
};

/// Reads a Hugging Face folder, a .safetensors, a .gguf (with its other parts), a llama2.c .bin, a model by name, or a
/// snapshot. Errors: not_found; damaged, also a snapshot whose checksums do not match; unsupported.
Result<Inspection> inspect(const std::string& name_or_path);

}  // namespace kvasir
