// Locks between processes, where huggingface_hub has them too: CACHE/.locks/models--OWNER--NAME/SUM.lock.
#pragma once

#include <filesystem>
#include <functional>

#include <kvasir/result.h>

#include "base/hub_names.h"

namespace kvasir::hub {

/// Holds flock on a file of its own as long as it lives; the system lets go of it however the process ends. Move-only.
class FileLock {
 public:
  enum class Mode { alone, shared };

  FileLock() = default;
  /// Waits for it; `on_wait` is called first where somebody else has it.
  static Result<FileLock> take(const std::filesystem::path& path, Mode mode, const std::function<void()>& on_wait);
  /// Does not wait: Error::busy where somebody else has it.
  static Result<FileLock> try_take(const std::filesystem::path& path, Mode mode);

  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&& other) noexcept;
  ~FileLock();

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_ = -1;
};

/// The folder of a repository's locks, and the lock that every pull shares and a removal has alone.
std::filesystem::path lock_folder(const std::filesystem::path& cache, const RepoName& repo);
std::filesystem::path repo_lock(const std::filesystem::path& cache, const RepoName& repo);

}  // namespace kvasir::hub
