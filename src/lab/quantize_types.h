// Chooses the type of each tensor of a GGUF file for a requested weight type: a codec, or a mix of several.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <kvasir/result.h>

#include "arch/config.h"
#include "dtype/codec.h"

namespace kvasir {

/// A type that can be requested, with llama.cpp's number for a file of it.
struct FileType {
  std::string_view name;
  uint32_t number;         ///< general.file_type. Source: ggml-org/llama.cpp, enum llama_ftype
  std::string_view codec;  ///< of the matrices for which the type has no rule
};
std::span<const FileType> file_types();

/// Chooses types, and records each deviation from the requested one.
class TypeChooser {
 public:
  /// Errors: an unknown type; an entry of `types` (QuantizeOptions::types) that is not NAME=TYPE.
  static Result<TypeChooser> create(std::string_view type, const std::vector<std::string>& types,
                                    const ModelConfig& config);

  const FileType& type() const { return *type_; }
  const Codec& choose(std::string_view name, const std::vector<int64_t>& shape);
  /// After all tensors: one line for each kind of tensor that does not have the requested type. Errors: an entry of
  /// `types` that named no matrix.
  Result<std::vector<std::string>> finish() const;

 private:
  TypeChooser() = default;
  /// Numbers of the model that rules depend on.
  struct Facts {
    int layers = 0, group = 1, experts = 0;  ///< group: query heads per KV head
    bool tied_head = false;
  };
  struct Named {
    const Codec* codec = nullptr;
    bool used = false;
  };
  const Codec* named_codec(std::string_view name);
  std::string_view matrix_type(std::string_view name, const std::vector<int64_t>& shape) const;
  std::string_view by_rules(std::string_view kind, int layer) const;

  const FileType* type_ = nullptr;
  std::map<std::string, Named> named_;  // by name or kind of tensor, without ".weight"
  Facts facts_;
  std::map<std::string, int> fallbacks_;  // line without its count -> tensors
};

}  // namespace kvasir
