// The types that K and V may be stored in. A type is a codec, and whether heads are rotated before they reach it; the
// rotation itself is math/hadamard.h's, done by the attention block.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include <kvasir/result.h>

#include "dtype/codec.h"

namespace kvasir {

struct KvType {
  std::string name;  ///< the codec's, with an h where heads are rotated
  const Codec* codec;
  /// Heads are stored multiplied by a Hadamard matrix, which spreads a channel that is far larger than the others over
  /// all of them (arXiv:2404.00456).
  bool rotated = false;
};

/// Every type, from wide to narrow. Other codecs are for weights.
std::span<const KvType> kv_types();
/// By name, or by the safetensors spelling of the codec. Errors: an unknown name, with the list of known ones; `where`
/// is the parameter or file that has it.
Result<const KvType*> find_kv_type(std::string_view name, const std::string& where = "SessionOptions::kv_type_k");
/// The type that stores heads of this codec as they are. Null: the codec is for weights.
const KvType* kv_type_of(const Codec& codec);

}  // namespace kvasir
