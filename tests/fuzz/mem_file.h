// A file in memory with a path, for readers that take one. Fuzz targets only.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

namespace kvasir::fuzz {

inline void require(bool holds) {
  if (!holds) __builtin_trap();
}

/// One file for all inputs: write() replaces its bytes. No mapping of it may exist then.
class MemFile {
 public:
  MemFile() : fd_(memfd_create("fuzz", MFD_CLOEXEC)) { require(fd_ >= 0); }
  std::string write(const uint8_t* data, size_t size) {
    require(ftruncate(fd_, 0) == 0);
    require(size == 0 || pwrite(fd_, data, size, 0) == static_cast<ssize_t>(size));
    return "/proc/self/fd/" + std::to_string(fd_);
  }

 private:
  int fd_;
};

}  // namespace kvasir::fuzz
