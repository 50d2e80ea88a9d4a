// POSIX calls. Every failure names the path and the system's own words.
#include "base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include <fmt/format.h>

namespace kvasir {
namespace fs = std::filesystem;

tl::unexpected<Error> fail_errno(const char* action, const fs::path& path, int error, std::string hint) {
  return fail(fmt::format("cannot {}: {}", action, std::generic_category().message(error)), path.string(),
              std::move(hint));
}

namespace {

constexpr size_t kWriteBuffer = size_t{256} << 10;
constexpr const char* kCutHint = "the file was cut while in use; restore it and start again";
constexpr size_t kMaxSyscallBytes = size_t{1} << 30;  // Linux moves at most 2 GiB - 4 KiB in one call

/// Reads until `out` is full or the file ends; gives the number of bytes read.
Result<size_t> pread_fully(int fd, const fs::path& path, uint64_t offset, std::span<std::byte> out) {
  size_t done = 0;
  while (done < out.size()) {
    const size_t want = std::min(out.size() - done, kMaxSyscallBytes);
    const ssize_t got = ::pread(fd, out.data() + done, want, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      return fail(fmt::format("cannot read at offset {}: {}", offset + done, std::generic_category().message(errno)),
                  path.string());
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

Result<void> write_fully(int fd, const fs::path& path, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd, bytes.data(), std::min(bytes.size(), kMaxSyscallBytes));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return fail_errno("write", path, errno);
    bytes = bytes.subspan(static_cast<size_t>(put));
  }
  return {};
}

/// Creates a fresh temporary beside `target`; a leftover of an earlier process with our id gets out of the way by
/// number.
Result<int> create_temporary(const fs::path& target, fs::path& temporary) {
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    temporary = target;
    temporary += fmt::format(".tmp.{}", ::getpid());
    if (i > 0) temporary += fmt::format(".{}", i);
    const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0) return fd;
    if (errno != EEXIST) break;
  }
  const int error = errno;
  temporary.clear();
  return fail_errno("create", target, error, "choose an output in a folder that exists and can be written");
}

/// The rename itself reaches the disk only with its folder; some file systems cannot sync one, and that is no error.
void sync_folder_of(const fs::path& path) {
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  static_cast<void>(::fsync(fd));
  ::close(fd);
}

}  // namespace

// O_NONBLOCK keeps a pipe from hanging the open.
Result<InputFile> InputFile::open(const fs::path& path) {
  InputFile file;
  file.path_ = path;
  file.fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file.fd_ < 0) return fail_errno("open", path, errno);
  struct stat info;
  if (::fstat(file.fd_, &info) != 0) return fail_errno("stat", path, errno);
  if (S_ISDIR(info.st_mode)) return fail_errno("read", path, EISDIR, "name a file inside the folder");
  if (!S_ISREG(info.st_mode)) return fail("not a regular file", path.string());
  file.size_ = static_cast<size_t>(info.st_size);
  return file;
}

InputFile& InputFile::operator=(InputFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(size_, other.size_);
  return *this;
}

InputFile::~InputFile() {
  if (fd_ >= 0) ::close(fd_);
}

Result<void> InputFile::check_size() const {
  struct stat info;
  if (::fstat(fd_, &info) != 0) return fail_errno("stat", path_, errno);
  if (static_cast<size_t>(info.st_size) >= size_) return {};
  return fail(fmt::format("{} bytes, it had {} when it was opened", info.st_size, size_), path_.string(), kCutHint);
}

Result<void> InputFile::read_at(uint64_t offset, std::span<std::byte> out) const {
  if (offset > size_ || out.size() > size_ - offset)
    return fail(fmt::format("{} bytes at offset {} are past the end of {} bytes", out.size(), offset, size_),
                path_.string());
  KVASIR_TRY(const size_t got, pread_fully(fd_, path_, offset, out));
  if (got != out.size())
    return fail(fmt::format("short read: {} of {} bytes at offset {}", got, out.size(), offset), path_.string(),
                kCutHint);
  return {};
}

Result<std::string> read_text_file(const fs::path& path, size_t max_bytes) {
  KVASIR_TRY(const InputFile file, InputFile::open(path));
  if (file.size() > max_bytes)
    return fail(fmt::format("{} bytes, at most {} allowed", file.size(), max_bytes), path.string());
  std::string text(file.size(), '\0');
  KVASIR_CHECK(file.read_at(0, std::as_writable_bytes(std::span(text))));
  return text;
}

Result<AtomicFile> AtomicFile::create(const fs::path& path) {
  AtomicFile file;
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  file.target_ = fs::is_symlink(fs::symlink_status(path, ignored)) ? fs::weakly_canonical(path, ignored) : path;
  if (fs::exists(status) && !fs::is_regular_file(status)) {  // renaming over /dev/null would replace the device
    file.fd_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (file.fd_ < 0) return fail_errno("write", path, errno);
    return file;
  }
  KVASIR_TRY(file.fd_, create_temporary(file.target_, file.temporary_));
  return file;
}

AtomicFile::~AtomicFile() { discard(); }

AtomicFile::AtomicFile(AtomicFile&& other) noexcept { *this = std::move(other); }

AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
  if (this == &other) return *this;
  discard();
  target_ = std::exchange(other.target_, {});
  temporary_ = std::exchange(other.temporary_, {});
  fd_ = std::exchange(other.fd_, -1);
  buffer_ = std::exchange(other.buffer_, {});
  return *this;
}

void AtomicFile::discard() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  temporary_.clear();
}

// Always in whole buffers at multiples of their size: the page cache then holds the file in large pieces, from which it
// is read several times as fast as from single pages (docs/memory.md).
Result<void> AtomicFile::write(std::span<const std::byte> bytes) {
  if (fd_ < 0) return fail("the output is already finished", target_.string());
  while (!bytes.empty()) {
    const auto part = bytes.first(std::min(bytes.size(), kWriteBuffer - buffer_.size()));
    buffer_.insert(buffer_.end(), part.begin(), part.end());
    bytes = bytes.subspan(part.size());
    if (buffer_.size() == kWriteBuffer) KVASIR_CHECK(flush());
  }
  return {};
}

Result<void> AtomicFile::flush() {
  auto written = write_fully(fd_, target_, buffer_);
  buffer_.clear();
  return written;
}

Result<void> AtomicFile::commit() {
  if (fd_ < 0) return fail("the output is already finished", target_.string());
  KVASIR_CHECK(flush());
  const bool unsyncable = ::fsync(fd_) != 0;  // EINVAL: a device or a pipe, which has no disk behind it
  if (unsyncable && errno != EINVAL && errno != EROFS) return fail_errno("flush", target_, errno);
  if (::close(std::exchange(fd_, -1)) != 0) return fail_errno("close", target_, errno);
  if (temporary_.empty()) return {};
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) return fail_errno("rename to", target_, errno);
  temporary_.clear();
  sync_folder_of(target_);
  return {};
}

Result<void> write_file_atomically(const fs::path& path, std::span<const std::byte> bytes) {
  KVASIR_TRY(AtomicFile file, AtomicFile::create(path));
  KVASIR_CHECK(file.write(bytes));
  return file.commit();
}

}  // namespace kvasir
