// Storage types as codecs. A codec only knows how a row of floats is stored; it knows no tensor, model or cache. One
// file per type (f32.cc, f16.cc, ...), found by CMake's glob: to add a type, add a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "dtype/operands.h"

namespace kvasir {

/// A storage type. A row is stored in blocks of `block_elems` channels that take `block_bytes` bytes each.
struct Codec {
  const char* name;       ///< "f32", "f16", "bf16"
  const char* file_name;  ///< name in files, "F32" in safetensors
  const char* summary;    ///< one line that describes a row
  int block_elems;        ///< channels in one block
  int block_bytes;        ///< bytes of one block
  Act act;
  RowForm form;

  /// Encodes n floats (n a multiple of block_elems). Returns the number of values that saturated. Null: the type is
  /// only read.
  int64_t (*encode)(const float* src, std::byte* dst, int64_t n);
  /// The same with the errors weighed by importance[n] (error_weights.h). Null if the type does not search.
  int64_t (*encode_by)(const float* src, const float* importance, std::byte* dst, int64_t n) = nullptr;
  /// Decodes the first n values exactly; the last block may contain more.
  void (*decode)(const std::byte* src, float* dst, int64_t n);
  /// Returns sum_i row[i] * act[i], summed in the order of docs/numerics.md. `act` points at n floats, or at n / 32
  /// ActBlocks if `act` is Act::q8. This is the definition of the product.
  float (*dot)(const std::byte* row, const std::byte* act, int64_t n);

  /// Encodes K and V: a type with scales tries several per block (dtype/closest_scale.h). Null: the type is for weights
  /// only.
  int64_t (*encode_kv)(const float* src, std::byte* dst, int64_t n) = nullptr;
  bool kv_rotated = false;  ///< also offered as a KV type with rotated heads (cache/kv_type.h)

  /// Bytes of a row of n channels; n is rounded up to whole blocks.
  constexpr size_t row_bytes(int64_t n) const {
    return static_cast<size_t>((n + block_elems - 1) / block_elems) * static_cast<size_t>(block_bytes);
  }
};

/// Every storage type of this build, in the order of file names.
std::span<const Codec* const> codecs();
/// Finds a codec by name ("f16") or by its name in files ("F16"); null if unknown.
const Codec* find_codec(std::string_view name);

const Codec& codec_f32();
const Codec& codec_f16();
const Codec& codec_bf16();

}  // namespace kvasir
