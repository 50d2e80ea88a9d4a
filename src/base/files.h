// Files as bytes: reads that a file cut meanwhile turns into errors, small whole-file reads, and outputs that appear
// complete or not at all. Nothing here knows what the bytes mean; mappings are format/mapped_file.h's.
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

/// not_found, no_room or io.
Error::Kind kind_of_errno(int error);
/// What the system said of a path.
tl::unexpected<Error> fail_errno(const char* action, const std::filesystem::path& path, int error,
                                 std::string hint = {});

/// Whether something has that name: a link to nothing has, which std::filesystem::exists denies. Opening it says what
/// is wrong with it.
bool is_there(const std::filesystem::path& path);

/// Why there is no file behind a link: "a link to X, which does not exist". Null: `path` is no such link.
std::optional<Error> dangling_link(const std::filesystem::path& path);

/// Two states of a file differ in one of these numbers.
struct FileStamp {
  uint64_t device = 0, inode = 0, bytes = 0;
  int64_t modified_ns = 0;  ///< anybody can set it
  int64_t changed_ns = 0;   ///< ctime: only the system sets it, with every change of content, name or rights
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
  /// When it was opened.
  size_t size() const { return size_; }
  int fd() const { return fd_; }
  /// The stamp when the file was opened, and now.
  const FileStamp& opened_as() const { return opened_as_; }
  Result<FileStamp> stamp() const;
  /// Whether its file system is one whose ctime changes with every change. Of network and foreign file systems nobody
  /// knows.
  bool keeps_change_time() const;
  /// Copies out.size() bytes from `offset`, from any thread. A read that ends early is an error.
  Result<void> read_at(uint64_t offset, std::span<std::byte> out) const;
  /// Errors: the file is shorter than it was when it was opened.
  Result<void> check_size() const;

 private:
  InputFile() = default;

  std::filesystem::path path_;
  int fd_ = -1;
  size_t size_ = 0;
  FileStamp opened_as_;
};

/// The whole of a regular file as text; more than max_bytes is an error. An empty file is an empty string.
Result<std::string> read_text_file(const std::filesystem::path& path, size_t max_bytes);

/// An output that replaces `path` only when commit() succeeds. Until then its bytes are in a file without a name, of
/// which nothing stays whatever ends the process; or, where the file system has no such files, in a temporary beside
/// `path`, which the destructor and remove_temporaries() remove. create() removes temporaries of the path that killed
/// processes have left. A path that is a device or a pipe is written straight through. One thread at a time.
class AtomicFile {
 public:
  static Result<AtomicFile> create(const std::filesystem::path& path);
  ~AtomicFile();
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&& other) noexcept;

  Result<void> write(std::span<const std::byte> bytes);
  /// Flushes to the disk what is written so far.
  Result<void> sync();
  /// sync(), and the output gets the name `path`, or `as` of the same file system, whose folder need not have existed
  /// before. Nothing may be written afterwards.
  Result<void> commit(const std::filesystem::path& as = {});

 private:
  AtomicFile() = default;
  Result<void> name_unnamed();
  Result<void> flush();
  void discard();

  std::filesystem::path target_;
  std::filesystem::path temporary_;  // what it is called now; empty: it has no name, or its own, or is a device
  TemporaryName remembered_;         // of temporary_
  bool unnamed_ = false;
  int fd_ = -1;
  std::vector<std::byte> buffer_;
};

/// Writes all of `bytes` to `path`, or nothing.
Result<void> write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes);

}  // namespace kvasir
