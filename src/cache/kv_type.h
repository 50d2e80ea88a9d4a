// The types in which K and V may be stored. A type is a codec plus whether heads are rotated first; the attention block
// does the rotation with math/hadamard.h.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include <kvasir/result.h>

#include "dtype/codec.h"

namespace kvasir {

struct KvType {
  std::string name;  ///< the codec's, with an h if heads are rotated
  const Codec* codec;
  /// Heads are multiplied by a Hadamard matrix before they are stored, which spreads an outlier channel over all
  /// channels (arXiv:2404.00456).
  bool rotated = false;
};

/// Every KV type, from wide to narrow. Codecs that are not listed are for weights only.
std::span<const KvType> kv_types();
/// Finds a type by its name or by the safetensors spelling of its codec. `where`: the parameter or file that contains
/// the name. Errors: an unknown name, with the list of known ones.
Result<const KvType*> find_kv_type(std::string_view name, const std::string& where = "SessionOptions::kv_type_k");
/// The unrotated type with this codec. Null if the codec is for weights only.
const KvType* kv_type_of(const Codec& codec);

}  // namespace kvasir
