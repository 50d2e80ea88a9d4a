// Splits a job into blocks and decides how, and by which thread, each is read.
#include "format/background_reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/system.h"

namespace kvasir {
namespace {

constexpr size_t kBlockBytes = size_t{1} << 20;
constexpr size_t kSpareBytes = size_t{256} << 20;  // unused memory that the page cache must leave free

}  // namespace

struct FileBlock {
  const MappedFile* file;
  uint64_t offset;
  size_t bytes;
  std::byte* out;
  size_t read;  // index of the FileRead

  /// The same block extended to whole disk blocks, for a read past the page cache.
  FileBlock whole() const {
    constexpr size_t kAlign = BackgroundReader::kAlign;
    const size_t lead = offset % kAlign;
    return {file, offset - lead, (lead + bytes + kAlign - 1) / kAlign * kAlign, out - lead, read};
  }
};

/// The outcome of a job. It keeps the failure that comes first in the files, not in time.
class ReadOutcome {
 public:
  void note(const FileBlock& block, Result<void> result) {
    if (result) return;
    const MutexLock lock(mutex_);
    const std::pair place{block.read, block.offset};
    if (failure_ && place_ < place) return;
    place_ = place;
    failure_ = BackgroundReader::Failure{block.read, block.offset, std::move(result).error()};
    failed_ = true;
  }
  bool failed() const { return failed_; }
  std::optional<BackgroundReader::Failure> failure() {
    const MutexLock lock(mutex_);
    return std::move(failure_);
  }

 private:
  Mutex mutex_;
  std::pair<size_t, uint64_t> place_ KVASIR_GUARDED_BY(mutex_);
  std::optional<BackgroundReader::Failure> failure_ KVASIR_GUARDED_BY(mutex_);
  std::atomic<bool> failed_ = false;
};

namespace {

/// Reads through the page cache.
Result<void> read_cached(const FileBlock& block) { return block.file->read_at(block.offset, {block.out, block.bytes}); }

/// Reads through the page cache, then drops the pages. Used if the file system cannot read past the cache, or to report
/// the error of such a read.
Result<void> read_and_forget(const FileBlock& block) {
  KVASIR_CHECK(read_cached(block));
  ::posix_fadvise(block.file->fd(), static_cast<off_t>(block.offset), static_cast<off_t>(block.bytes),
                  POSIX_FADV_DONTNEED);
  return {};
}

/// True if a read of block.whole() that returned `got` bytes (or a negative error) contains all of the block.
bool is_whole(const FileBlock& block, int64_t got) {
  return got >= static_cast<int64_t>(block.offset - block.whole().offset + block.bytes);
}

Result<void> read_direct(const FileBlock& block) {
  const FileBlock whole = block.whole();
  if (is_whole(block, ::pread(block.file->direct_fd(), whole.out, whole.bytes, static_cast<off_t>(whole.offset))))
    return {};
  return read_and_forget(block);
}

bool submit(UringQueue& uring, const FileBlock& block, size_t tag) {
  const FileBlock whole = block.whole();
  return uring.read(block.file->direct_fd(), whole.offset, whole.out, whole.bytes, tag);
}

}  // namespace

BackgroundReader::BackgroundReader(size_t total, const Options& options) : total_(total), options_(options) {}

Result<std::unique_ptr<BackgroundReader>> BackgroundReader::create(size_t total, const Options& options) {
  std::unique_ptr<BackgroundReader> reader(new BackgroundReader(total, options));
  if (options.io_uring) reader->uring_ = UringQueue::open();
  try {
    reader->thread_ = std::thread([raw = reader.get()] { raw->work(); });
  } catch (const std::system_error& error) {
    return fail(Error::io, fmt::format("no thread to read weights with: {}", error.what()), "streamed weights",
                "ModelOptions::weights = mapped");
  }
  return reader;
}

BackgroundReader::~BackgroundReader() {
  {
    const MutexLock lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

// Asks for one byte of a block whether it is cached: asking for every page would take a quarter of the time of copying
// it.
void BackgroundReader::start(const std::vector<FileRead>& reads) {
  cached_.clear();
  on_disk_.clear();
  for (size_t i = 0; i < reads.size(); ++i)
    for (size_t done = 0; done < reads[i].bytes;) {
      const uint64_t offset = reads[i].offset + done;
      const size_t bytes = std::min<size_t>(reads[i].bytes - done, kBlockBytes - offset % kBlockBytes);
      const FileBlock block{reads[i].file, offset, bytes, reads[i].out + done, i};
      (!options_.cached_too && reads[i].file->cached(offset + bytes / 2) ? cached_ : on_disk_).push_back(block);
      done += bytes;
    }
  outcome_ = std::make_unique<ReadOutcome>();
  if (on_disk_.empty()) return;
  {
    const MutexLock lock(mutex_);
    working_ = true;
  }
  changed_.notify_all();
}

bool BackgroundReader::idle() const { return on_disk_.empty(); }

tl::expected<void, BackgroundReader::Failure> BackgroundReader::wait(ThreadPool& pool) {
  if (outcome_ == nullptr) return {};
  pool.run(static_cast<int>(cached_.size()), [&](int i, int) {
    const FileBlock& block = cached_[static_cast<size_t>(i)];
    outcome_->note(block, read_cached(block));
  });
  {
    const MutexLock lock(mutex_);
    while (working_) changed_.wait(mutex_);
  }
  auto failure = std::exchange(outcome_, nullptr)->failure();
  if (failure) return tl::unexpected(std::move(*failure));
  return {};
}

// Waits for a job; returns false if there will be no more.
bool BackgroundReader::next_job() {
  const MutexLock lock(mutex_);
  while (!working_ && !stop_) changed_.wait(mutex_);
  return !stop_;
}

void BackgroundReader::work() {
  while (next_job()) {
    read_from_disk(on_disk_, *outcome_);
    const MutexLock lock(mutex_);
    working_ = false;
    changed_.notify_all();
  }
}

bool BackgroundReader::may_stay_cached() const {
  return options_.fill_page_cache ? *options_.fill_page_cache : unused_memory_bytes() > total_ + kSpareBytes;
}

// Blocks that may stay cached are read in order: the system then reads far ahead and caches the file in large pieces.
void BackgroundReader::read_from_disk(const std::vector<FileBlock>& blocks, ReadOutcome& outcome) {
  const bool keep = may_stay_cached();
  const auto reap = [&] {
    const UringQueue::Done done = uring_->wait();
    const FileBlock& block = blocks[done.tag];
    if (!is_whole(block, done.result)) outcome.note(block, read_and_forget(block));
  };
  for (size_t i = 0; i < blocks.size() && !outcome.failed(); ++i) {
    const FileBlock& block = blocks[i];
    if (keep || block.file->direct_fd() < 0) {
      outcome.note(block, keep ? read_cached(block) : read_and_forget(block));
      continue;
    }
    if (uring_ && uring_->full()) reap();
    if (!uring_ || !submit(*uring_, block, i)) outcome.note(block, read_direct(block));
  }
  while (uring_ && !uring_->idle()) reap();
}

}  // namespace kvasir
