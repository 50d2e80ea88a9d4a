// POSIX calls. Every error names the path and has the system's own message.
#include "base/files.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include <fmt/format.h>

namespace kvasir {
namespace fs = std::filesystem;

Error::Kind kind_of_errno(int error) {
  if (error == ENOENT || error == ENOTDIR) return Error::not_found;
  return error == ENOMEM ? Error::no_room : Error::io;
}

tl::unexpected<Error> fail_errno(const char* action, const fs::path& path, int error, std::string hint) {
  return fail(kind_of_errno(error), fmt::format("cannot {}: {}", action, std::generic_category().message(error)),
              path.string(), std::move(hint));
}

namespace {

constexpr size_t kWriteBuffer = size_t{256} << 10;
constexpr const char* kCutHint = "restoring the file, which was truncated while in use, and starting again";
constexpr size_t kMaxSyscallBytes = size_t{1} << 30;  // Linux moves at most 2 GiB - 4 KiB in one call

/// Reads until `out` is full or the file ends. Returns the number of bytes read.
Result<size_t> pread_fully(int fd, const fs::path& path, uint64_t offset, std::span<std::byte> out) {
  size_t done = 0;
  while (done < out.size()) {
    const size_t want = std::min(out.size() - done, kMaxSyscallBytes);
    const ssize_t got = ::pread(fd, out.data() + done, want, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      return fail(Error::io,
                  fmt::format("cannot read at offset {}: {}", offset + done, std::generic_category().message(errno)),
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

fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

std::string open_file(int fd) { return fmt::format("/proc/self/fd/{}", fd); }

// Creates a new temporary beside `target` with `make`, which sets errno on failure. If an earlier process with our
// number left one of the same name, a counter in the name avoids it.
template <class Make>
bool make_temporary(const fs::path& target, fs::path& temporary, TemporaryName& remembered, Make make) {
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    temporary = temporary_name(target, i);
    if (!is_there(temporary)) {
      remembered = TemporaryName(temporary);  // registered before it exists, so that a signal removes it
      if (make(temporary.c_str())) return true;
      if (errno != EEXIST) break;
    }
    errno = EEXIST;
  }
  const int error = errno;
  remembered.forget();
  temporary.clear();
  errno = error;
  return false;
}

Result<int> create_temporary(const fs::path& target, fs::path& temporary, TemporaryName& remembered) {
  int fd = -1;
  const auto make = [&fd](const char* name) {
    return (fd = ::open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) >= 0;
  };
  if (!make_temporary(target, temporary, remembered, make))
    return fail_errno("create", target, errno, "choose an output in a folder that exists and can be written");
  lock_temporary(fd);
  return fd;
}

/// Opens a file in the folder's file system that has no name and can get one later; -1 if that is not possible.
int create_unnamed(const fs::path& folder) {
  const int fd = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
  if (fd < 0) return -1;
  if (::access(open_file(fd).c_str(), F_OK) != 0) {  // no /proc, which link_unnamed() needs
    ::close(fd);
    return -1;
  }
  lock_temporary(fd);
  return fd;
}

bool link_unnamed(int fd, const char* name) {
  return ::linkat(AT_FDCWD, open_file(fd).c_str(), AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0;
}

Result<void> copy_all(int from, int to, const fs::path& path) {
  off_t at = 0;
  for (;;) {
    const ssize_t sent = ::sendfile(to, from, &at, kMaxSyscallBytes);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return fail_errno("write", path, errno);
    if (sent == 0) return {};
  }
}

// EINVAL: a device or a pipe, which has no disk behind it.
Result<void> sync_file(int fd, const fs::path& path) {
  if (::fsync(fd) == 0 || errno == EINVAL || errno == EROFS) return {};
  return fail_errno("flush", path, errno);
}

/// Syncs the folder, without which the rename may not reach the disk. Some file systems cannot sync a folder; that is
/// not an error.
void sync_folder_of(const fs::path& path) {
  const int fd = ::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  static_cast<void>(::fsync(fd));
  ::close(fd);
}

FileStamp stamp_of(const struct stat& info) {
  constexpr int64_t kSecond = 1'000'000'000;
  return {.device = info.st_dev,
          .inode = info.st_ino,
          .bytes = static_cast<uint64_t>(info.st_size),
          .modified_ns = info.st_mtim.tv_sec * kSecond + info.st_mtim.tv_nsec,
          .changed_ns = info.st_ctim.tv_sec * kSecond + info.st_ctim.tv_nsec};
}

}  // namespace

bool is_there(const fs::path& path) {
  struct stat info;
  return ::lstat(path.c_str(), &info) == 0;
}

std::optional<Error> dangling_link(const fs::path& path) {
  std::error_code ec;
  if (!fs::is_symlink(fs::symlink_status(path, ec)) || fs::status(path, ec).type() != fs::file_type::not_found)
    return std::nullopt;
  constexpr int kMostHops = 40;  // Linux's own limit
  fs::path at = path, to = fs::read_symlink(path, ec);
  for (int hop = 0; hop < kMostHops && !ec; ++hop) {
    const fs::path next = at.parent_path() / to;
    if (!fs::is_symlink(fs::symlink_status(next, ec))) break;
    at = next;
    to = fs::read_symlink(next, ec);
  }
  return Error{Error::not_found, fmt::format("a link to {}, which does not exist", to.string()), path.string(),
               "put the file back there, or download it again"};
}

// O_NONBLOCK: opening a pipe must not block.
Result<InputFile> InputFile::open(const fs::path& path) {
  InputFile file;
  file.path_ = path;
  file.fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file.fd_ < 0) {
    const int error = errno;
    if (auto dangling = dangling_link(path)) return tl::unexpected(std::move(*dangling));
    return fail_errno("open", path, error);
  }
  struct stat info;
  if (::fstat(file.fd_, &info) != 0) return fail_errno("stat", path, errno);
  if (S_ISDIR(info.st_mode)) return fail_errno("read", path, EISDIR, "name a file inside the folder");
  if (!S_ISREG(info.st_mode)) return fail(Error::bad_argument, "not a regular file", path.string());
  file.size_ = static_cast<size_t>(info.st_size);
  file.opened_as_ = stamp_of(info);
  return file;
}

InputFile& InputFile::operator=(InputFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(size_, other.size_);
  std::swap(opened_as_, other.opened_as_);
  return *this;
}

InputFile::~InputFile() {
  if (fd_ >= 0) ::close(fd_);
}

Result<FileStamp> InputFile::stamp() const {
  struct stat info;
  if (::fstat(fd_, &info) != 0) return fail_errno("stat", path_, errno);
  return stamp_of(info);
}

// True for Linux's local file systems and those layered on them.
bool InputFile::keeps_change_time() const {
  constexpr unsigned kZfs = 0x2fc12fc1, kBcachefs = 0xca451a4e;  // not in Linux's header of magic numbers
  constexpr std::array<unsigned, 11> kKnown{
      EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC, F2FS_SUPER_MAGIC,     OVERLAYFS_SUPER_MAGIC,
      TMPFS_MAGIC,      RAMFS_MAGIC,     SQUASHFS_MAGIC,    EROFS_SUPER_MAGIC_V1, kZfs,
      kBcachefs};
  struct statfs info;
  if (opened_as_.changed_ns == 0 || ::fstatfs(fd_, &info) != 0) return false;
  return std::find(kKnown.begin(), kKnown.end(), static_cast<unsigned>(info.f_type)) != kKnown.end();
}

Result<void> InputFile::check_size() const {
  struct stat info;
  if (::fstat(fd_, &info) != 0) return fail_errno("stat", path_, errno);
  if (static_cast<size_t>(info.st_size) >= size_) return {};
  return fail(Error::damaged, fmt::format("{} bytes, it had {} when it was opened", info.st_size, size_),
              path_.string(), kCutHint);
}

Result<void> InputFile::read_at(uint64_t offset, std::span<std::byte> out) const {
  if (offset > size_ || out.size() > size_ - offset)
    return fail(Error::damaged,
                fmt::format("{} bytes at offset {} are past the end of {} bytes", out.size(), offset, size_),
                path_.string());
  KVASIR_TRY(const size_t got, pread_fully(fd_, path_, offset, out));
  if (got != out.size())
    return fail(Error::damaged, fmt::format("short read: {} of {} bytes at offset {}", got, out.size(), offset),
                path_.string(), kCutHint);
  return {};
}

Result<std::string> read_text_file(const fs::path& path, size_t max_bytes) {
  KVASIR_TRY(const InputFile file, InputFile::open(path));
  if (file.size() > max_bytes)
    return fail(Error::unsupported, fmt::format("{} bytes, at most {} allowed", file.size(), max_bytes), path.string());
  std::string text(file.size(), '\0');
  KVASIR_CHECK(file.read_at(0, std::as_writable_bytes(std::span(text))));
  return text;
}

Result<AtomicFile> AtomicFile::create(const fs::path& path) {
  AtomicFile file;
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  file.target_ = fs::is_symlink(fs::symlink_status(path, ignored)) ? fs::weakly_canonical(path, ignored) : path;
  if (fs::exists(status) && !fs::is_regular_file(status)) {  // a rename would replace a device such as /dev/null
    file.fd_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (file.fd_ < 0) return fail_errno("write", path, errno);
    return file;
  }
  for (const fs::path& leftover : leftovers_of(file.target_)) ::unlink(leftover.c_str());
  file.fd_ = create_unnamed(folder_of(file.target_));
  file.unnamed_ = file.fd_ >= 0;
  if (!file.unnamed_) {
    KVASIR_TRY(file.fd_, create_temporary(file.target_, file.temporary_, file.remembered_));
  }
  return file;
}

AtomicFile::~AtomicFile() { discard(); }

AtomicFile::AtomicFile(AtomicFile&& other) noexcept { *this = std::move(other); }

AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
  if (this == &other) return *this;
  discard();
  target_ = std::exchange(other.target_, {});
  temporary_ = std::exchange(other.temporary_, {});
  remembered_ = std::move(other.remembered_);
  unnamed_ = std::exchange(other.unnamed_, false);
  fd_ = std::exchange(other.fd_, -1);
  buffer_ = std::exchange(other.buffer_, {});
  return *this;
}

void AtomicFile::discard() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  temporary_.clear();
  remembered_.forget();
}

// Writes only whole buffers at multiples of their size: the page cache then holds the file in large pieces, and reads
// from those are several times as fast as from single pages (docs/memory.md).
Result<void> AtomicFile::write(std::span<const std::byte> bytes) {
  if (fd_ < 0) return fail(Error::bad_argument, "the output is already finished", target_.string());
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

// Gives the unnamed file a name. A link cannot replace an existing file, so it is made beside that file and renamed
// later. If links are not allowed, the bytes are copied, since they may be the result of a long run.
Result<void> AtomicFile::name_unnamed() {
  if (link_unnamed(fd_, target_.c_str())) return {};
  const bool taken = errno == EEXIST;
  const auto link = [this](const char* name) { return link_unnamed(fd_, name); };
  if (taken && make_temporary(target_, temporary_, remembered_, link)) return {};
  KVASIR_TRY(const int copy, create_temporary(target_, temporary_, remembered_));
  auto done = copy_all(fd_, copy, target_);
  if (done) done = sync_file(copy, target_);
  ::close(std::exchange(fd_, copy));
  return done;
}

Result<void> AtomicFile::sync() {
  KVASIR_CHECK(flush());
  return sync_file(fd_, target_);
}

Result<void> AtomicFile::commit(const fs::path& as) {
  if (fd_ < 0) return fail(Error::bad_argument, "the output is already finished", target_.string());
  if (!as.empty()) target_ = as;
  KVASIR_CHECK(sync());
  if (unnamed_) KVASIR_CHECK(name_unnamed());
  if (::close(std::exchange(fd_, -1)) != 0) return fail_errno("close", target_, errno);
  if (!temporary_.empty() && ::rename(temporary_.c_str(), target_.c_str()) != 0)
    return fail_errno("rename to", target_, errno);
  if (!unnamed_ && temporary_.empty()) return {};
  temporary_.clear();
  remembered_.forget();
  sync_folder_of(target_);
  return {};
}

Result<void> write_file_atomically(const fs::path& path, std::span<const std::byte> bytes) {
  KVASIR_TRY(AtomicFile file, AtomicFile::create(path));
  KVASIR_CHECK(file.write(bytes));
  return file.commit();
}

}  // namespace kvasir
