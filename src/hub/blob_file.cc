// All writes append, so a killed process leaves a shorter file, never one with a hole.
#include "hub/blob_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/files.h"

namespace kvasir::hub {
namespace fs = std::filesystem;
namespace {

constexpr size_t kReadBytes = size_t{1} << 20;

fs::path incomplete(const fs::path& blobs, const std::string& sum) { return blobs / (sum + ".incomplete"); }

// A rename is durable once its folder is synced. Errors are ignored, since some file systems cannot sync a folder.
void sync_folder(const fs::path& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  static_cast<void>(::fsync(fd));
  ::close(fd);
}

}  // namespace

BlobFile::BlobFile(BlobFile&& other) noexcept
    : path_(std::move(other.path_)),
      sum_(std::move(other.sum_)),
      bytes_(other.bytes_),
      size_(other.size_),
      found_(other.found_),
      digest_(other.digest_),
      fd_(std::exchange(other.fd_, -1)) {}

BlobFile::~BlobFile() {
  if (fd_ >= 0) ::close(fd_);
}

Result<BlobFile> BlobFile::open(const fs::path& blobs, const std::string& sum, uint64_t bytes) {
  std::error_code ec;
  fs::create_directories(blobs, ec);
  if (ec) return fail_errno("create", blobs, ec.value());
  BlobFile file(incomplete(blobs, sum), sum, bytes);
  file.fd_ = ::open(file.path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (file.fd_ < 0) return fail_errno("create", file.path_, errno);
  KVASIR_CHECK(file.read_found());
  return file;
}

// A file longer than bytes_ cannot have the right checksum, so it is truncated to nothing.
Result<void> BlobFile::read_found() {
  struct stat info {};
  if (::fstat(fd_, &info) != 0) return fail_errno("stat", path_, errno);
  if (!S_ISREG(info.st_mode)) return fail(Error::io, "not a regular file", path_.string(), "remove it");
  if (static_cast<uint64_t>(info.st_size) > bytes_ && ::ftruncate(fd_, 0) != 0)
    return fail_errno("truncate", path_, errno);
  std::vector<std::byte> buffer(kReadBytes);
  for (;;) {
    const ssize_t got = ::pread(fd_, buffer.data(), buffer.size(), static_cast<off_t>(size_));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno("read", path_, errno);
    if (got == 0) break;
    digest_.add(std::span(buffer).first(static_cast<size_t>(got)));
    size_ += static_cast<uint64_t>(got);
  }
  found_ = size_;
  return {};
}

Result<void> BlobFile::append(std::string_view bytes) {
  if (bytes.size() > bytes_ - size_)
    return fail(Error::damaged, fmt::format("received more than the announced {} bytes", bytes_), path_.string());
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd_, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0)
      return fail_errno("write", path_, errno, "more disk space; what was received is kept, and the next pull resumes");
    const auto done = static_cast<size_t>(put);
    digest_.add(std::as_bytes(std::span(bytes.data(), done)));
    size_ += done;
    bytes.remove_prefix(done);
  }
  return {};
}

Result<void> BlobFile::commit() {
  const fs::path blob = path_.parent_path() / sum_;
  if (const std::string sum = digest_.finish(); sum != sum_) {
    ::unlink(path_.c_str());
    return fail(Error::damaged, fmt::format("the received bytes have the checksum {}, not the announced one", sum),
                blob.string(), "pull again, or another endpoint");
  }
  if (::fsync(fd_) != 0) return fail_errno("flush", path_, errno);
  if (::rename(path_.c_str(), blob.c_str()) != 0) return fail_errno("rename to", blob, errno);
  sync_folder(blob.parent_path());
  return {};
}

bool has_blob(const fs::path& blobs, const std::string& sum, uint64_t bytes) {
  std::error_code ec;
  return fs::is_regular_file(blobs / sum, ec) && fs::file_size(blobs / sum, ec) == bytes && !ec;
}

uint64_t bytes_there(const fs::path& blobs, const std::string& sum, uint64_t bytes) {
  if (has_blob(blobs, sum, bytes)) return bytes;
  std::error_code ec;
  const auto size = fs::file_size(incomplete(blobs, sum), ec);
  return ec || size > bytes ? 0 : size;
}

}  // namespace kvasir::hub
