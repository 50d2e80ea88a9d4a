// Files memory-mapped read-only. Does not know what the bytes mean.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include <kvasir/result.h>

#include "base/files.h"

namespace kvasir {

/// A file memory-mapped read-only for as long as the object lives. Its resident pages count as weights, since only
/// models are mapped. Safe to read from any thread. If another process truncates the file, touching bytes() past its
/// new end kills the process (SIGBUS); read_at returns an error instead.
class MappedFile {
 public:
  /// Errors: missing or unreadable file, not a regular file, empty file.
  static Result<std::shared_ptr<MappedFile>> open(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::filesystem::path& path() const { return file_.path(); }
  const InputFile& file() const { return file_; }

  /// InputFile::read_at, which does not touch the mapping.
  Result<void> read_at(uint64_t offset, std::span<std::byte> out) const { return file_.read_at(offset, out); }
  /// True if this byte is in the page cache now. Also true for a file of another owner, whose state the system hides.
  /// Requires: the byte lies in the file.
  bool cached(uint64_t offset) const;
  Result<void> check_size() const { return file_.check_size(); }
  /// Removes the mapping's pages from this process's resident set; they stay in the page cache.
  void drop_pages() const;

  int fd() const { return file_.fd(); }
  /// Descriptor for reads past the page cache (O_DIRECT); -1 if the file system has none.
  int direct_fd() const { return direct_fd_; }

 private:
  MappedFile(InputFile file, int direct_fd, const std::byte* data)
      : file_(std::move(file)), direct_fd_(direct_fd), data_(data), size_(file_.size()) {}

  InputFile file_;
  int direct_fd_;
  const std::byte* data_;
  size_t size_;
};

}  // namespace kvasir
