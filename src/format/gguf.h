// Reads GGUF files, versions 2 and 3: the metadata and the place of each tensor, in one file or its splits. Does not
// know what keys and tensor names mean to a model. Source: ggml-org/ggml docs/gguf.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <kvasir/result.h>
#include <boost/unordered/unordered_flat_map.hpp>

#include "format/tensor_file.h"

namespace kvasir {

/// The format's numbers for types of metadata values.
enum class GgufType : uint32_t {
  u8 = 0,
  i8 = 1,
  u16 = 2,
  i16 = 3,
  u32 = 4,
  i32 = 5,
  f32 = 6,
  boolean = 7,
  string = 8,
  array = 9,
  u64 = 10,
  i64 = 11,
  f64 = 12,
};

/// "u32", "string", ...
std::string_view gguf_type_name(GgufType type);

/// Returns the format's number for a tensor type by its name there ("Q8_0" -> 8); nullopt if it has no such type.
std::optional<uint32_t> gguf_tensor_type(std::string_view name);

/// A metadata value. Its views point into the mapped file.
struct GgufValue {
  GgufType type = GgufType::u8;
  GgufType element = GgufType::u8;        ///< of an array
  uint64_t count = 0;                     ///< elements of an array
  std::span<const std::byte> bytes;       ///< as stored; a string without its length
  std::vector<std::string_view> strings;  ///< of an array of strings

  /// For any integer type, if the value fits.
  std::optional<int64_t> as_int() const;
  /// For any integer or float type.
  std::optional<double> as_number() const;
  std::optional<bool> as_bool() const;
  std::optional<std::string_view> as_string() const;
  /// The elements of an array of integers or floats; nullopt for any other value.
  std::optional<std::vector<double>> as_numbers() const;
};

struct GgufMetadata {
  std::vector<std::pair<std::string_view, GgufValue>> entries;  ///< in file order, no key twice
  boost::unordered_flat_map<std::string_view, size_t> index;

  /// Returns nullptr if there is no such key.
  const GgufValue* find(std::string_view key) const;
  // Return nullopt for an absent key. Fail on a value of another kind; errors name the key and the type found.
  Result<std::optional<int64_t>> get_int(std::string_view key) const;
  Result<std::optional<double>> get_number(std::string_view key) const;
  Result<std::optional<bool>> get_bool(std::string_view key) const;
  Result<std::optional<std::string_view>> get_string(std::string_view key) const;
};

struct GgufFile {
  uint32_t version = 0;
  GgufMetadata metadata;  ///< of the first split
  TensorDir tensors;      ///< of all splits; keeps the mappings that the metadata points into
};

/// Declarations of one file (not its splits). Parsing checks every count, string, type, shape and range against the
/// size of `bytes` and does not touch the tensors' data. Tensors carry `file` = 0 and are not sorted.
struct GgufHeader {
  uint32_t version = 0;
  GgufMetadata metadata;
  std::vector<TensorInfo> tensors;
};
Result<GgufHeader> parse_gguf_header(std::span<const std::byte> bytes, const std::string& where);

/// True if the file starts with GGUF's magic number. Names do not count: those in blob stores do not end in .gguf.
bool is_gguf(const std::filesystem::path& path);

/// Opens a file; if it is a part of a split one (NAME-00001-of-00003.gguf, or another ending), opens all parts.
Result<GgufFile> open_gguf(const std::filesystem::path& path);

}  // namespace kvasir
