// A list of files and folders that must not outlive the process, which a signal handler can remove. files.h creates the
// files; the program installs the handler.
#pragma once

#include <filesystem>
#include <vector>

namespace kvasir {

/// A path that remove_temporaries() removes while this object lives. Move-only. The destructor only forgets the path.
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

/// Removes all listed files, then the listed folders that are empty. Safe in a signal handler.
void remove_temporaries() noexcept;

/// "PATH.tmp.1234": the name under which process 1234 writes what becomes PATH. `again` distinguishes several of one
/// process.
std::filesystem::path temporary_name(const std::filesystem::path& path, int again = 0);

/// Temporary files and folders beside `path` that killed processes of this user left: no process has the number in
/// their name, and nobody holds their lock (lock_temporary), which every writer takes. Files of other users are left
/// alone.
std::vector<std::filesystem::path> leftovers_of(const std::filesystem::path& path);

/// While `fd` is open, leftovers_of() does not list its file or folder.
void lock_temporary(int fd) noexcept;

}  // namespace kvasir
