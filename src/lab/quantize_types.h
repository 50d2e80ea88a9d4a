// Chooses the type of each tensor of a GGUF file for a requested weight type.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "dtype/codec.h"

namespace kvasir {

/// A type that can be requested, with llama.cpp's number for a file of it.
struct FileType {
  std::string_view name;
  uint32_t number;  ///< general.file_type. Source: ggml-org/llama.cpp, enum llama_ftype
};
std::span<const FileType> file_types();

/// Chooses types, and records each deviation from the requested one.
class TypeChooser {
 public:
  explicit TypeChooser(const Codec& asked) : asked_(asked) {}

  const Codec& choose(std::string_view name, const std::vector<int64_t>& shape);
  /// One line for each kind of tensor that does not have the requested type.
  std::vector<std::string> notes() const;

 private:
  const Codec& matrix_type(std::string_view name, int64_t cols);

  const Codec& asked_;
  std::map<std::string, int> fallbacks_;  // line without its count -> tensors
};

}  // namespace kvasir
