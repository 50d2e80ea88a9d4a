// Names of files and folders that must not outlive the process: a list that a signal handler can empty. Who makes the
// files, and when, is files.h's; the handler is the program's.
#pragma once

#include <filesystem>
#include <vector>

namespace kvasir {

/// A path that remove_temporaries() removes as long as this lives. Move-only. Its own destruction removes nothing.
class TemporaryName {
 public:
  TemporaryName() = default;
  explicit TemporaryName(const std::filesystem::path& path);
  ~TemporaryName() { forget(); }
  TemporaryName(TemporaryName&& other) noexcept { *this = std::move(other); }
  TemporaryName& operator=(TemporaryName&& other) noexcept;

  void forget() noexcept;

 private:
  int slot_ = -1;  // -1: not in the list
};

/// Removes all of them, files first and then the folders that they leave empty. Safe in a signal handler.
void remove_temporaries() noexcept;

/// "PATH.tmp.1234": where process 1234 writes what becomes PATH. `again` tells several of one process apart.
std::filesystem::path temporary_name(const std::filesystem::path& path, int again = 0);

/// Such files and folders beside `path` that a process of ours left when it was killed: no process has their number,
/// and nobody holds their lock, which every writer takes (lock_temporary). Other owners' are left alone.
std::vector<std::filesystem::path> leftovers_of(const std::filesystem::path& path);

/// As long as `fd` is open, leftovers_of() does not give the file or folder behind it.
void lock_temporary(int fd) noexcept;

}  // namespace kvasir
