// Files as bytes: reads that report a file truncated in the meantime as an error, small whole-file reads, and outputs
// that appear complete or not at all. Memory-mapped files are in format/mapped_file.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <kvasir/result.h>

#include "base/temporaries.h"

namespace kvasir {

/// Maps errno to not_found, no_room or io.
Error::Kind kind_of_errno(int error);
/// An error with the system's own message about a path.
tl::unexpected<Error> fail_errno(const char* action, const std::filesystem::path& path, int error,
                                 std::string hint = {});

/// Whether a directory entry with that name exists, including a link to nothing, for which std::filesystem::exists
/// returns false.
bool is_there(const std::filesystem::path& path);

/// If `path` is a link to nothing, the error that says so: "a link to X, which does not exist". Otherwise empty.
std::optional<Error> dangling_link(const std::filesystem::path& path);

/// Identifies a file's state: any change alters at least one of these numbers.
struct FileStamp {
  uint64_t device = 0, inode = 0, bytes = 0;
  int64_t modified_ns = 0;  ///< mtime; any program can set it
  int64_t changed_ns = 0;   ///< ctime: only the system sets it, at every change of content, name or permissions
  bool operator==(const FileStamp&) const = default;
};

/// A regular file, open for reading. Move-only.
class InputFile {
 public:
  /// Errors: missing or unreadable, a link to nothing, not a regular file.
  static Result<InputFile> open(const std::filesystem::path& path);
  InputFile(InputFile&& other) noexcept { *this = std::move(other); }
  InputFile& operator=(InputFile&& other) noexcept;
  ~InputFile();

  const std::filesystem::path& path() const { return path_; }
  /// Size when the file was opened, in bytes.
  size_t size() const { return size_; }
  int fd() const { return fd_; }
  /// The stamp taken when the file was opened; stamp() takes one now.
  const FileStamp& opened_as() const { return opened_as_; }
  Result<FileStamp> stamp() const;
  /// Whether the file's file system updates ctime at every change. False for network and foreign file systems, where
  /// this is not known.
  bool keeps_change_time() const;
  /// Copies out.size() bytes from `offset`. Thread-safe. Errors: the read ends early or fails.
  Result<void> read_at(uint64_t offset, std::span<std::byte> out) const;
  /// Errors: the file is shorter than when it was opened.
  Result<void> check_size() const;

 private:
  InputFile() = default;

  std::filesystem::path path_;
  int fd_ = -1;
  size_t size_ = 0;
  FileStamp opened_as_;
};

/// Reads a regular file as text; an empty file is an empty string. Errors: more than max_bytes bytes, or an unreadable
/// file.
Result<std::string> read_text_file(const std::filesystem::path& path, size_t max_bytes);

/// An output that replaces `path` only when commit() succeeds. Until then its bytes are in a file without a name, which
/// vanishes however the process ends. If the file system has no such files, they are in a temporary beside `path`,
/// which the destructor and remove_temporaries() remove. create() removes temporaries of the path that killed processes
/// left. A device or a pipe is written directly. For one thread at a time.
class AtomicFile {
 public:
  static Result<AtomicFile> create(const std::filesystem::path& path);
  ~AtomicFile();
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&& other) noexcept;

  Result<void> write(std::span<const std::byte> bytes);
  /// Flushes everything written so far to the disk.
  Result<void> sync();
  /// Calls sync(), then gives the output its name: `path`, or `as` on the same file system, whose folder may have been
  /// created since create(). Nothing may be written afterwards.
  Result<void> commit(const std::filesystem::path& as = {});

 private:
  AtomicFile() = default;
  Result<void> name_unnamed();
  Result<void> flush();
  void discard();

  std::filesystem::path target_;
  std::filesystem::path temporary_;  // current name; empty if unnamed, committed, or a device
  TemporaryName remembered_;         // registers temporary_
  bool unnamed_ = false;
  int fd_ = -1;
  std::vector<std::byte> buffer_;
};

/// Writes all of `bytes` to `path`, or changes nothing.
Result<void> write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes);

}  // namespace kvasir
