// Reads pieces of files into memory in the background. Handles bytes only; the caller knows what they mean.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include <kvasir/result.h>

#include "base/mutex.h"
#include "base/thread_pool.h"
#include "format/mapped_file.h"
#include "format/uring_queue.h"

namespace kvasir {

/// A piece of a file and its destination. Requires: `out` and `offset` are equal modulo BackgroundReader::kAlign, and
/// the rest of the first and last kAlign bytes of memory may be overwritten.
struct FileRead {
  const MappedFile* file;
  uint64_t offset;
  size_t bytes;
  std::byte* out;
};

struct FileBlock;  // the part of a FileRead in one block (1 MiB) of the file
class ReadOutcome;

/// Runs one job at a time; one thread calls it. Its own thread immediately reads the blocks that are not in the page
/// cache from disk: many at a time through io_uring if the system allows it, else one after the other. They stay in the
/// page cache only if enough memory is unused, so that nobody else's pages are evicted. Cached blocks only need
/// copying; the threads that wait do that, since another thread would compete for their cores.
class BackgroundReader {
 public:
  static constexpr size_t kAlign = 4096;

  struct Options {
    bool io_uring = true;
    /// Whether read bytes may stay in the page cache. Absent: if enough memory is unused.
    std::optional<bool> fill_page_cache;
    bool cached_too = false;  ///< treat cached blocks as not cached, for measurements
  };
  /// A failed read of a job: its index, the file offset of the block, and the error.
  struct Failure {
    size_t read;
    uint64_t offset;
    Error error;
  };

  /// `total`: bytes that all jobs together read, which the page cache would have to hold. Errors: no thread.
  static Result<std::unique_ptr<BackgroundReader>> create(size_t total, const Options& options);
  ~BackgroundReader();
  BackgroundReader(const BackgroundReader&) = delete;
  BackgroundReader& operator=(const BackgroundReader&) = delete;

  /// Starts a job. Requires: wait() was called for the job before.
  void start(const std::vector<FileRead>& reads);
  /// True if no part of the job comes from disk, so that wait() does all of it.
  bool idle() const;
  /// Waits until the job is done; the pool's threads help. Returns at once if no job was started.
  tl::expected<void, Failure> wait(ThreadPool& pool);

 private:
  BackgroundReader(size_t total, const Options& options);
  void work();
  bool next_job();
  void read_from_disk(const std::vector<FileBlock>& blocks, ReadOutcome& outcome);
  bool may_stay_cached() const;

  size_t total_;
  Options options_;
  std::optional<UringQueue> uring_;

  // The job. While working_ is true, the thread uses on_disk_ and outcome_; otherwise they belong to the owner.
  std::vector<FileBlock> cached_, on_disk_;
  std::unique_ptr<ReadOutcome> outcome_;
  Mutex mutex_;
  Condition changed_;
  bool working_ KVASIR_GUARDED_BY(mutex_) = false;
  bool stop_ KVASIR_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace kvasir
