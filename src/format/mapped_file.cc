// Maps and unmaps files.
#include "format/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/owned_ranges.h"

namespace kvasir {
namespace fs = std::filesystem;

namespace {

// Opens the file again by its name, and checks its identity: another file may have the name by now.
int open_direct(const InputFile& file) {
  const int fd = ::open(file.path().c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT | O_NONBLOCK);
  struct stat info;
  if (fd < 0) return -1;
  if (::fstat(fd, &info) == 0 && info.st_dev == file.opened_as().device && info.st_ino == file.opened_as().inode)
    return fd;
  ::close(fd);
  return -1;
}

}  // namespace

Result<std::shared_ptr<MappedFile>> MappedFile::open(const fs::path& path) {
  KVASIR_TRY(InputFile input, InputFile::open(path));
  const size_t size = input.size();
  if (size == 0) return fail(Error::damaged, "the file is empty", path.string(), "download or write it again");
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, input.fd(), 0);
  if (data == MAP_FAILED) return fail_errno("map", path, errno);
  const int direct = open_direct(input);
  std::shared_ptr<MappedFile> file(new MappedFile(std::move(input), direct, static_cast<const std::byte*>(data)));
  own_range(data, size, Owner::weights);
  return file;
}

MappedFile::~MappedFile() {
  disown_range(data_);
  ::munmap(const_cast<std::byte*>(data_), size_);
  if (direct_fd_ >= 0) ::close(direct_fd_);
}

// Does not read with RWF_NOWAIT, which would start reading ahead.
bool MappedFile::cached(uint64_t offset) const {
  constexpr uint64_t kPage = 4096;
  unsigned char page = 0;
  return ::mincore(const_cast<std::byte*>(data_) + offset / kPage * kPage, 1, &page) != 0 || (page & 1) != 0;
}

void MappedFile::drop_pages() const { ::madvise(const_cast<std::byte*>(data_), size_, MADV_DONTNEED); }

}  // namespace kvasir
