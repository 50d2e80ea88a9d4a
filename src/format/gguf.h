// GGUF files, versions 2 and 3: the metadata and where each tensor lies, over one file or its splits. Knows the
// format's words; what the keys and the tensor names mean to a model is not here.
// Source: ggml-org/ggml docs/gguf.md.
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

/// The format's own numbers.
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

/// The format's number for a type of tensors by its name there ("Q8_0" -> 8); empty when it has no such type.
std::optional<uint32_t> gguf_tensor_type(std::string_view name);

/// A metadata value. Its views point into the mapped file.
struct GgufValue {
  GgufType type = GgufType::u8;
  GgufType element = GgufType::u8;        ///< of an array
  uint64_t count = 0;                     ///< elements of an array
  std::span<const std::byte> bytes;       ///< as stored; a string without its length
  std::vector<std::string_view> strings;  ///< of an array of strings

  /// Any integer type whose value fits.
  std::optional<int64_t> as_int() const;
  /// Any integer or float type.
  std::optional<double> as_number() const;
  std::optional<bool> as_bool() const;
  std::optional<std::string_view> as_string() const;
  /// The elements of an array of integers or floats; empty when this is none.
  std::optional<std::vector<double>> as_numbers() const;
};

struct GgufMetadata {
  std::vector<std::pair<std::string_view, GgufValue>> entries;  ///< in file order, no key twice
  boost::unordered_flat_map<std::string_view, size_t> index;

  /// nullptr when there is no such key.
  const GgufValue* find(std::string_view key) const;
  // What is there must be of that kind; an absent key gives nothing. Errors name the key and the type found.
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

/// What one file (not its splits) declares: every count, string, type, shape and range is checked against the size of
/// `bytes`; the tensors' data is not touched. Tensors carry `file` = 0 and are not sorted.
struct GgufHeader {
  uint32_t version = 0;
  GgufMetadata metadata;
  std::vector<TensorInfo> tensors;
};
Result<GgufHeader> parse_gguf_header(std::span<const std::byte> bytes, const std::string& where);

/// Whether it is one by its first bytes; names mean nothing: blob stores have none that end in .gguf.
bool is_gguf(const std::filesystem::path& path);

/// Opens a file; a split one (NAME-00001-of-00003.gguf, or another ending) with all its parts.
Result<GgufFile> open_gguf(const std::filesystem::path& path);

}  // namespace kvasir
