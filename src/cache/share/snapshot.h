// A sequence in a file: its tokens and its cache, written from any layout and read into any other.
// docs/formats/snapshot.md describes the bytes. The model appears only as a fingerprint to compare.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"
#include "cache/layout.h"

namespace kvasir {

/// The header of a snapshot.
struct SnapshotHeader {
  uint32_t numerics_version = 0;
  std::string fingerprint;  ///< of the model, 32 hex digits
  CacheShape shape;         ///< types, windows and sinks included; max_ctx is `positions`
  std::vector<int> oldest;  ///< by layer: the file lacks positions below, except sinks
  int positions = 0;        ///< number of positions in the cache: those of the first tokens
  std::vector<int> tokens;
};

/// Writes a snapshot; replaces the file once all of it is on disk. Requires: `tokens` covers all positions of the
/// cache.
Result<void> save_snapshot(const std::filesystem::path& path, const Layout& cache, std::span<const int> tokens,
                           const std::string& fingerprint);

/// Whether the file begins with the magic bytes of a snapshot.
bool is_snapshot(const std::filesystem::path& path);

class Snapshot {
 public:
  /// Reads and checks the header, and that the file has the size that follows from it. Errors: not a snapshot, another
  /// format version, a header whose checksum is wrong or whose numbers are impossible.
  static Result<Snapshot> open(const std::filesystem::path& path);

  const SnapshotHeader& header() const { return header_; }
  uint64_t bytes() const { return file_.size(); }
  /// Verifies every checksum. Errors: names the damaged block.
  Result<void> check() const;
  /// Loads the positions into an empty cache of the header's shape. Verifies each block before storing its rows.
  /// Errors: those of check(), no memory; the cache is empty then.
  Result<void> load(Layout* cache) const;

 private:
  explicit Snapshot(InputFile file) : file_(std::move(file)) {}
  Result<void> read_header();
  Result<void> parse_header(std::span<const std::byte> bytes);
  template <class F>
  Result<void> each_block(F&& f) const;

  InputFile file_;
  SnapshotHeader header_;
  uint64_t header_bytes_ = 0;  // checksum included
};

}  // namespace kvasir
