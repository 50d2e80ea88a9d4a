// A partly downloaded blob of the cache, SUM.incomplete. It always holds a prefix of the file, so its size alone tells
// where to resume, also to huggingface_hub. It is renamed to SUM once its checksum matches. fetch.h makes the requests.
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
  /// Opens or creates BLOBS/SUM.incomplete and hashes the bytes that an earlier process left there. Requires:
  /// is_sum(sum), and no other writer (file_lock.h). Errors: the file cannot be created, read or truncated.
  static Result<BlobFile> open(const std::filesystem::path& blobs, const std::string& sum, uint64_t bytes);
  BlobFile(BlobFile&& other) noexcept;
  BlobFile& operator=(BlobFile&&) = delete;
  ~BlobFile();

  uint64_t size() const { return size_; }    ///< bytes so far
  uint64_t bytes() const { return bytes_; }  ///< bytes of the complete file
  uint64_t found() const { return found_; }  ///< bytes that were already there at open()
  /// Errors: more bytes than announced, or a failed write. Bytes written before the error stay valid.
  Result<void> append(std::string_view bytes);
  /// Verifies the checksum and renames the file to SUM. Requires: size() == bytes(). Errors: the checksum differs, in
  /// which case the file is deleted; or the file cannot be flushed or renamed.
  Result<void> commit();

 private:
  BlobFile(std::filesystem::path path, const std::string& sum, uint64_t bytes)
      : path_(std::move(path)), sum_(sum), bytes_(bytes), digest_(sum, bytes) {}
  Result<void> read_found();

  std::filesystem::path path_;  // ends in .incomplete
  std::string sum_;
  uint64_t bytes_ = 0, size_ = 0, found_ = 0;
  Digest digest_;
  int fd_ = -1;
};

/// Whether a complete blob with this checksum and size is there.
bool has_blob(const std::filesystem::path& blobs, const std::string& sum, uint64_t bytes);
/// Returns how many bytes of the blob are there, complete or not.
uint64_t bytes_there(const std::filesystem::path& blobs, const std::string& sum, uint64_t bytes);

}  // namespace kvasir::hub
