// Storage types as codecs. A codec knows how a row of floats is stored and nothing else: no tensor, no model, no cache.
// One file per type (f32.cc, f16.cc, ...), found by CMake's glob; adding a type is adding a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "dtype/operands.h"

namespace kvasir {

/// A storage type. Rows are encoded in blocks of `block_elems` channels taking `block_bytes` each.
struct Codec {
  const char* name;       ///< "f32", "f16", "bf16"
  const char* file_name;  ///< safetensors spelling, "F32"
  const char* summary;    ///< what a row is, in a line
  int block_elems;        ///< channels in one block
  int block_bytes;        ///< bytes of one block
  Act act;
  RowForm form;

  /// Encodes n floats (n a multiple of block_elems). Returns how many values saturated.
  int64_t (*encode)(const float* src, std::byte* dst, int64_t n);
  /// Decodes the first n values, exactly; the last block may have more.
  void (*decode)(const std::byte* src, float* dst, int64_t n);
  /// sum_i row[i] * act[i] in the order of docs/numerics.md; `act` points at n floats, or at n / 32 ActBlocks. This IS
  /// the definition of the product.
  float (*dot)(const std::byte* row, const std::byte* act, int64_t n);

  /// As encode, for K and V: a type with scales tries a few for each block (dtype/closest_scale.h). Null: for weights
  /// alone.
  int64_t (*encode_kv)(const float* src, std::byte* dst, int64_t n) = nullptr;
  bool kv_rotated = false;  ///< worth storing K and V with rotated heads too (cache/kv_type.h)

  /// Bytes of a row of n channels; n is rounded up to whole blocks.
  constexpr size_t row_bytes(int64_t n) const {
    return static_cast<size_t>((n + block_elems - 1) / block_elems) * static_cast<size_t>(block_bytes);
  }
};

/// Every storage type of this build, in file-name order.
std::span<const Codec* const> codecs();
/// By name ("f16") or by the safetensors spelling ("F16"); nullptr when unknown.
const Codec* find_codec(std::string_view name);

const Codec& codec_f32();
const Codec& codec_f16();
const Codec& codec_bf16();

}  // namespace kvasir
