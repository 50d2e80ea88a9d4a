// Writes GGUF files, version 3: metadata entries, then tensors as a stream. Does not know which keys and names a model
// needs. Source: ggml-org/ggml docs/gguf.md.
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

#include "format/gguf.h"
#include "format/tensor_file.h"

namespace kvasir {

/// Metadata to write, in the order in which it is added.
class GgufEntries {
 public:
  void u32(std::string_view key, uint32_t value);
  void i32(std::string_view key, int32_t value);
  void u64(std::string_view key, uint64_t value);
  void f32(std::string_view key, float value);
  void boolean(std::string_view key, bool value);
  void string(std::string_view key, std::string_view value);
  void strings(std::string_view key, std::span<const std::string_view> values);
  void i32s(std::string_view key, std::span<const int32_t> values);
  void f32s(std::string_view key, std::span<const float> values);
  /// Copies a value from another file.
  void copy(std::string_view key, const GgufValue& value);

 private:
  friend class GgufWriter;
  std::string& start(std::string_view key, GgufType type);
  void start_array(std::string_view key, GgufType element, uint64_t count);

  std::string bytes_;
  std::vector<std::string> keys_;
};

/// Writes a file tensor by tensor without holding it in memory. Call `create`, then `write` with the tensors' data in
/// declaration order in pieces of any size, then `finish`. Nothing appears at `path` before finish() succeeds.
class GgufWriter {
 public:
  /// Errors: a type, shape or name that the format or its readers cannot hold, a key or name twice, an output that
  /// cannot be written.
  Result<void> create(const std::filesystem::path& path, const GgufEntries& entries, std::vector<TensorDecl> tensors);
  Result<void> write(std::span<const std::byte> bytes);
  Result<void> finish();

  /// Bytes of the whole file.
  uint64_t file_bytes() const { return header_bytes_ + total_; }

 private:
  struct Place {
    uint64_t begin, end;  // in the data section; zeros fill the gap up to the next begin
  };
  Result<void> pad_to(uint64_t offset);

  std::optional<AtomicFile> file_;
  std::string path_;
  std::vector<TensorDecl> tensors_;
  std::vector<Place> places_;
  size_t at_ = 0;  // the tensor that the next byte belongs to
  uint64_t header_bytes_ = 0, total_ = 0, written_ = 0;
};

}  // namespace kvasir
