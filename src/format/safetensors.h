// The safetensors format: a JSON header, then the tensors' bytes. Reads one file or a folder of shards, and writes one
// file as a stream. Does not know which tensors a model needs.
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

#include "format/tensor_file.h"

namespace kvasir {

/// Opens a .safetensors file, or a folder with model.safetensors or model.safetensors.index.json and its shards.
Result<TensorDir> open_safetensors(const std::filesystem::path& file_or_folder);

/// Returns the tensors that a whole file (header and data) declares, sorted by name, `file` = 0. Checks every range:
/// the tensors must cover the data exactly, without overlap or gap. Does not touch the data itself.
Result<std::vector<TensorInfo>> parse_safetensors_header(std::span<const std::byte> file_bytes, std::string_view where);

/// Returns the bits of one element of a safetensors dtype ("BF16" -> 16); nullopt if the format has no such dtype.
std::optional<int> safetensors_dtype_bits(std::string_view dtype);

/// Writes a file tensor by tensor without holding it in memory; all types have one element per block. Call `create`,
/// then `write` with the data in declaration order in pieces of any size, then `finish`. Nothing appears at `path`
/// before finish() succeeds.
class SafetensorsWriter {
 public:
  Result<void> create(const std::filesystem::path& path, std::vector<TensorDecl> tensors);
  Result<void> write(std::span<const std::byte> bytes);
  /// Flushes the bytes written so far to disk, so that finish() takes no time.
  Result<void> sync();
  /// `as`: a final name other than `path`, on the same file system.
  Result<void> finish(const std::filesystem::path& as = {});

 private:
  std::optional<AtomicFile> file_;
  std::string path_;
  std::vector<TensorDecl> tensors_;
  std::vector<uint64_t> ends_;  // end of each tensor in the data section
  uint64_t total_ = 0;
  uint64_t written_ = 0;
};

}  // namespace kvasir
