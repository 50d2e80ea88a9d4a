// Locks between processes, at the paths that huggingface_hub uses too: CACHE/.locks/models--OWNER--NAME/SUM.lock.
#pragma once

#include <filesystem>
#include <functional>

#include <kvasir/result.h>

#include "base/hub_names.h"

namespace kvasir::hub {

/// Holds a flock on a lock file during its lifetime. The system releases it however the process ends. Move-only.
class FileLock {
 public:
  enum class Mode { alone, shared };

  FileLock() = default;
  /// Takes the lock. If another process holds it, calls `on_wait`, then waits. Errors: the file cannot be created or
  /// locked.
  static Result<FileLock> take(const std::filesystem::path& path, Mode mode, const std::function<void()>& on_wait);
  /// Takes the lock without waiting. Errors: Error::busy if another process holds it; as take() otherwise.
  static Result<FileLock> try_take(const std::filesystem::path& path, Mode mode);

  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&& other) noexcept;
  ~FileLock();

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_ = -1;
};

/// The folder of a repository's locks.
std::filesystem::path lock_folder(const std::filesystem::path& cache, const RepoName& repo);
/// The lock that pulls of a repository share and that a removal holds alone.
std::filesystem::path repo_lock(const std::filesystem::path& cache, const RepoName& repo);

}  // namespace kvasir::hub
