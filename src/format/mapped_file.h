// Files as bytes: read-only mappings, small whole-file reads, and outputs that appear complete or not at all.
// Nothing here knows what the bytes mean.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <kvasir/result.h>

namespace kvasir {

/// A file mapped read-only for as long as the object lives; its resident pages count as weights, for only models are
/// mapped. Safe to read from any thread. If another process truncates the file, touching bytes() past its new end kills
/// the process (SIGBUS); read_at returns an error instead.
class MappedFile {
 public:
  /// Errors: missing or unreadable file, not a regular file, empty file.
  static Result<std::shared_ptr<MappedFile>> open(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::filesystem::path& path() const { return path_; }

  /// Copies out.size() bytes from `offset` without touching the mapping. A read that ends early is an error.
  Result<void> read_at(uint64_t offset, std::span<std::byte> out) const;
  /// Whether this byte lies in the page cache now. Of a file that is not ours the system does not tell: true.
  /// Requires: it lies in the file.
  bool cached(uint64_t offset) const;
  /// Errors: the file is shorter than it was when it was opened.
  Result<void> check_size() const;
  /// Takes what was touched of the mapping out of this process's resident set; it stays in the page cache.
  void drop_pages() const;

  int fd() const { return fd_; }
  /// Reads past the page cache (O_DIRECT); -1 where the file system cannot.
  int direct_fd() const { return direct_fd_; }

 private:
  MappedFile(std::filesystem::path path, int fd, int direct_fd, const std::byte* data, size_t size)
      : path_(std::move(path)), fd_(fd), direct_fd_(direct_fd), data_(data), size_(size) {}

  std::filesystem::path path_;
  int fd_, direct_fd_;
  const std::byte* data_;
  size_t size_;
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
