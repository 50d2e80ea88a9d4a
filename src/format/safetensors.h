// The safetensors format: a JSON header, then the tensors' bytes. Reads one file or a folder of shards, and writes one
// file as a stream. Knows nothing of which tensors a model needs.
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

/// A .safetensors file, or a folder with model.safetensors or model.safetensors.index.json and its shards.
Result<TensorDir> open_safetensors(const std::filesystem::path& file_or_folder);

/// The tensors that a whole file (header and data) declares, sorted by name, `file` = 0. Every range is checked: the
/// tensors cover the data exactly, without overlap or hole. Never touches the data itself.
Result<std::vector<TensorInfo>> parse_safetensors_header(std::span<const std::byte> file_bytes, std::string_view where);

/// Bits of one element of a safetensors dtype ("BF16" -> 16); empty when the format has no such word.
std::optional<int> safetensors_dtype_bits(std::string_view dtype);

/// Writes a file tensor by tensor without holding it; all have plain types (one element a block). `create`, then
/// `write` the data in declaration order in pieces of any size, then `finish`. Before finish() succeeds nothing is seen
/// at `path`.
class SafetensorsWriter {
 public:
  Result<void> create(const std::filesystem::path& path, std::vector<TensorDecl> tensors);
  Result<void> write(std::span<const std::byte> bytes);
  /// Flushes to the disk what is written so far, so that finish() takes no time.
  Result<void> sync();
  /// `as`: another name than `path`, of the same file system.
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
