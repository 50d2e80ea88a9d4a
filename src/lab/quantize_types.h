// Which type each tensor of a GGUF file gets when one is asked for.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "dtype/codec.h"

namespace kvasir {

/// The types that can be asked for, with llama.cpp's number for a file of them.
struct FileType {
  std::string_view name;
  uint32_t number;  ///< general.file_type. Source: ggml-org/llama.cpp, enum llama_ftype
};
std::span<const FileType> file_types();

/// Chooses, and remembers where it could not do as asked.
class TypeChooser {
 public:
  explicit TypeChooser(const Codec& asked) : asked_(asked) {}

  const Codec& choose(std::string_view name, const std::vector<int64_t>& shape);
  /// One line for each kind of tensor that is not as asked.
  std::vector<std::string> notes() const;

 private:
  const Codec& matrix_type(std::string_view name, int64_t cols);

  const Codec& asked_;
  std::map<std::string, int> fallbacks_;  // line without its count -> tensors
};

}  // namespace kvasir
