// Locks with flock, as Python's filelock does.
#include "hub/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/files.h"
#include "base/hub_cache.h"

namespace kvasir::hub {
namespace fs = std::filesystem;
namespace {

bool lock(int fd, int how) {
  while (::flock(fd, how) != 0)
    if (errno != EINTR) return false;
  return true;
}

// The previous holder may have removed the file. A lock on a removed file excludes nobody.
bool still_named(int fd, const fs::path& path) {
  struct stat opened {};
  struct stat named {};
  return ::fstat(fd, &opened) == 0 && ::stat(path.c_str(), &named) == 0 && opened.st_ino == named.st_ino &&
         opened.st_dev == named.st_dev;
}

}  // namespace

Result<FileLock> FileLock::take(const fs::path& path, Mode mode, const std::function<void()>& on_wait) {
  auto taken = try_take(path, mode);
  if (taken || taken.error().kind != Error::busy) return taken;
  if (on_wait) on_wait();
  for (;;) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) return fail_errno("create", path, errno);
    FileLock out(fd);
    if (!lock(fd, mode == Mode::shared ? LOCK_SH : LOCK_EX)) return fail_errno("lock", path, errno);
    if (still_named(fd, path)) return out;
  }
}

Result<FileLock> FileLock::try_take(const fs::path& path, Mode mode) {
  std::error_code ec;
  fs::create_directories(path.parent_path(), ec);
  if (ec) return fail_errno("create", path.parent_path(), ec.value());
  for (;;) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) return fail_errno("create", path, errno);
    FileLock out(fd);
    if (!lock(fd, (mode == Mode::shared ? LOCK_SH : LOCK_EX) | LOCK_NB)) {
      if (errno == EWOULDBLOCK) return fail(Error::busy, "another process holds this lock", path.string(), "later");
      return fail_errno("lock", path, errno);
    }
    if (still_named(fd, path)) return out;
  }
}

FileLock::FileLock(FileLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

FileLock::~FileLock() {
  if (fd_ >= 0) ::close(fd_);
}

fs::path lock_folder(const fs::path& cache, const RepoName& repo) { return cache / ".locks" / folder_name(repo); }
fs::path repo_lock(const fs::path& cache, const RepoName& repo) { return lock_folder(cache, repo) / "kvasir.lock"; }

}  // namespace kvasir::hub
