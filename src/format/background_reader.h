// Reads pieces of files into memory while its owner does something else. Bytes only: what they mean is the caller's.
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

/// A piece of a file and where it goes. Requires: `out` lies as far into a block of BackgroundReader::kAlign bytes as
/// `offset` does, and the rest of the first and the last block may be written.
struct FileRead {
  const MappedFile* file;
  uint64_t offset;
  size_t bytes;
  std::byte* out;
};

struct FileBlock;  // a piece of a FileRead between two multiples of a block's size in the file
class ReadOutcome;

/// One job at a time, from one thread. What does not lie in the page cache is read from the disk at once, many blocks
/// at a time by io_uring where the system allows that, one after the other where it does not; and only while memory is
/// unused anyway does it stay in the page cache, so that nobody else's pages have to go. What does lie there costs
/// nothing but copying, and that is done by the threads that wait: a thread beside theirs would only take their cores.
class BackgroundReader {
 public:
  static constexpr size_t kAlign = 4096;

  struct Options {
    bool io_uring = true;
    /// Whether read bytes may stay in the page cache; none: as long as so much memory is unused.
    std::optional<bool> keep_cached;
    bool cached_too = false;  ///< read from the disk what is cached as well: to measure it
  };
  /// A failed read of a job: which one, which block of it, and why.
  struct Failure {
    size_t read;
    uint64_t offset;
    Error error;
  };

  /// `total`: bytes that all jobs together come back to, which is what the page cache would have to take.
  static Result<std::unique_ptr<BackgroundReader>> create(size_t total, const Options& options);
  ~BackgroundReader();
  BackgroundReader(const BackgroundReader&) = delete;
  BackgroundReader& operator=(const BackgroundReader&) = delete;

  /// Requires: the job before was waited for.
  void start(const std::vector<FileRead>& reads);
  /// Whether nothing of the job has to come from the disk, so that all of it is left to wait().
  bool idle() const;
  /// Until the job is done, with the help of the pool's threads. Nothing was started: done.
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

  // The job. While working_ the thread has on_disk_ and notes in outcome_; else both are the owner's.
  std::vector<FileBlock> cached_, on_disk_;
  std::unique_ptr<ReadOutcome> outcome_;
  Mutex mutex_;
  Condition changed_;
  bool working_ KVASIR_GUARDED_BY(mutex_) = false;
  bool stop_ KVASIR_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace kvasir
