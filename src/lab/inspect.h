// What a file holds: a model, whether Kvasir can run it or not, or a session that was saved.
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
    std::string type;   ///< the file's own word: "u32", "array of string"; empty for JSON, where the value shows it
    std::string value;  ///< as JSON; of a long list only the first elements
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
  int64_t elements = 0;
  uint64_t bytes = 0;  ///< of all tensors
  /// Model::fingerprint; empty when the model cannot be opened, and `reason` says why.
  std::string fingerprint, reason;
  std::vector<Ignored> ignored;  ///< what Kvasir does not use of a model that it opens
};

/// A Hugging Face folder, a .safetensors, a .gguf (with its other parts), a llama2.c .bin, a model's name, or a
/// snapshot, which is refused when it is not what was written.
Result<Inspection> inspect(const std::string& name_or_path);

}  // namespace kvasir
