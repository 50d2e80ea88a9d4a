// Files as bytes: reads that a file cut meanwhile turns into errors, small whole-file reads, and outputs that appear
// complete or not at all. Nothing here knows what the bytes mean; mappings are format/mapped_file.h's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <kvasir/result.h>

namespace kvasir {

/// What the system said of a path.
tl::unexpected<Error> fail_errno(const char* action, const std::filesystem::path& path, int error,
                                 std::string hint = {});

/// A regular file, open for reading. Move-only.
class InputFile {
 public:
  /// Errors: missing or unreadable, not a regular file.
  static Result<InputFile> open(const std::filesystem::path& path);
  InputFile(InputFile&& other) noexcept { *this = std::move(other); }
  InputFile& operator=(InputFile&& other) noexcept;
  ~InputFile();

  const std::filesystem::path& path() const { return path_; }
  /// When it was opened.
  size_t size() const { return size_; }
  int fd() const { return fd_; }
  /// Copies out.size() bytes from `offset`, from any thread. A read that ends early is an error.
  Result<void> read_at(uint64_t offset, std::span<std::byte> out) const;
  /// Errors: the file is shorter than it was when it was opened.
  Result<void> check_size() const;

 private:
  InputFile() = default;

  std::filesystem::path path_;
  int fd_ = -1;
  size_t size_ = 0;
};

/// The whole of a regular file as text; more than max_bytes is an error. An empty file is an empty string.
Result<std::string> read_text_file(const std::filesystem::path& path, size_t max_bytes);

/// An output that replaces `path` only when commit() succeeds: bytes go to a temporary beside it, which the destructor
/// removes. A path that is a device or a pipe is written straight through. One thread at a time.
class AtomicFile {
 public:
  static Result<AtomicFile> create(const std::filesystem::path& path);
  ~AtomicFile();
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&& other) noexcept;

  Result<void> write(std::span<const std::byte> bytes);
  /// Flushes to the disk and renames over `path`. Nothing may be written afterwards.
  Result<void> commit();

 private:
  AtomicFile() = default;
  Result<void> flush();
  void discard();

  std::filesystem::path target_;
  std::filesystem::path temporary_;  // empty when written straight through, or after the rename
  int fd_ = -1;
  std::vector<std::byte> buffer_;
};

/// Writes all of `bytes` to `path`, or nothing.
Result<void> write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes);

}  // namespace kvasir
