// A blob of the cache while it grows: SUM.incomplete, whose bytes are always the first ones of the file, so that its
// size alone says where to go on, for huggingface_hub too. It gets its name when its sum is right. Requests are
// fetch.h's.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include <kvasir/result.h>

#include "hub/digest.h"

namespace kvasir::hub {

class BlobFile {
 public:
  /// Opens BLOBS/SUM.incomplete, or begins it, and sums what an earlier process left there. Requires: is_sum(sum), and
  /// nobody else writes it (file_lock.h).
  static Result<BlobFile> open(const std::filesystem::path& blobs, const std::string& sum, uint64_t bytes);
  BlobFile(BlobFile&& other) noexcept;
  BlobFile& operator=(BlobFile&&) = delete;
  ~BlobFile();

  uint64_t size() const { return size_; }    ///< so far
  uint64_t bytes() const { return bytes_; }  ///< when it is whole
  uint64_t found() const { return found_; }  ///< of size(), what was there when it was opened
  /// Errors: the disk is full or broken. What was written before it stays good.
  Result<void> append(std::string_view bytes);
  /// It gets its name. Errors: the sum is another one; then the bytes are gone, as they are worth nothing. Requires: it
  /// has all its bytes.
  Result<void> commit();

 private:
  BlobFile(std::filesystem::path path, const std::string& sum, uint64_t bytes)
      : path_(std::move(path)), sum_(sum), bytes_(bytes), digest_(sum, bytes) {}
  Result<void> read_found();

  std::filesystem::path path_;  // with .incomplete
  std::string sum_;
  uint64_t bytes_ = 0, size_ = 0, found_ = 0;
  Digest digest_;
  int fd_ = -1;
};

/// Whether a whole file of that sum and size is there already.
bool has_blob(const std::filesystem::path& blobs, const std::string& sum, uint64_t bytes);
/// How many bytes of it are there, whole or not.
uint64_t bytes_there(const std::filesystem::path& blobs, const std::string& sum, uint64_t bytes);

}  // namespace kvasir::hub
