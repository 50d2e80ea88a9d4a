// A sequence in a file: its tokens and its cache, of any layout, for any other. docs/formats/snapshot.md describes the
// bytes. What a model is, is not known here: its fingerprint is a name to compare.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"
#include "cache/layout.h"

namespace kvasir {

/// What a snapshot says of itself.
struct SnapshotHeader {
  uint32_t numerics_version = 0;
  std::string fingerprint;  ///< of the model, 32 hex digits
  CacheShape shape;         ///< types, windows and sinks included; max_ctx is `positions`
  std::vector<int> oldest;  ///< of each layer: positions below are not in the file, but for sinks
  int positions = 0;        ///< that the cache holds, of the first tokens
  std::vector<int> tokens;
};

/// Replaces the file when all of it is on the disk. Requires: the tokens of all positions of the cache.
Result<void> save_snapshot(const std::filesystem::path& path, const Layout& cache, std::span<const int> tokens,
                           const std::string& fingerprint);

/// Whether the file begins like a snapshot.
bool is_snapshot(const std::filesystem::path& path);

class Snapshot {
 public:
  /// Reads and checks the header, and that the file has the size that follows from it. Errors: no snapshot, another
  /// version, a header whose sum is wrong or whose numbers cannot be.
  static Result<Snapshot> open(const std::filesystem::path& path);

  const SnapshotHeader& header() const { return header_; }
  uint64_t bytes() const { return file_.size(); }
  /// Every sum. Errors: which block is not what was written.
  Result<void> check() const;
  /// Its positions into an empty cache of the shape that the header tells; each block is checked before its rows are
  /// stored. Errors: those of check(), no memory; then the cache is empty.
  Result<void> load(Layout* cache) const;

 private:
  explicit Snapshot(InputFile file) : file_(std::move(file)) {}
  Result<void> read_header();
  Result<void> parse_header(std::span<const std::byte> bytes);
  template <class F>
  Result<void> each_block(F&& f) const;

  InputFile file_;
  SnapshotHeader header_;
  uint64_t header_bytes_ = 0;  // with its sum
};

}  // namespace kvasir
