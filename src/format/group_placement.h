// A weight group in memory: the places of its parts, and the reads that fill it. Scattered tensors are read as they are
// stored, then assembled in other memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "format/background_reader.h"
#include "format/scattered_rows.h"
#include "format/weight_source.h"

namespace kvasir {

class GroupPlacement {
 public:
  /// Requires: `dir` outlives the placement.
  GroupPlacement(const TensorDir& dir, std::vector<TensorPart> group);

  /// Bytes of memory that the group is read into.
  size_t bytes() const { return bytes_; }
  /// Bytes of memory that it is assembled in; 0 if it needs no assembling.
  size_t joined_bytes() const { return joined_bytes_; }
  bool scattered() const { return scattered_; }

  /// The reads that fill `memory`, which is aligned to BackgroundReader::kAlign.
  std::vector<FileRead> reads(std::byte* memory) const;
  /// Addresses of the group's parts in `memory`, as read; nullptr for an absent part.
  std::vector<const std::byte*> pointers(const std::byte* memory) const;
  /// Assembles the group in `to` and returns the addresses of its parts there.
  std::vector<const std::byte*> join(const std::byte* memory, std::byte* to, ThreadPool& pool) const;
  /// `failure` of the group's reads, with the name of the tensor.
  Error explain(BackgroundReader::Failure failure) const;

 private:
  // Consecutive bytes of a file, and their position in memory.
  struct Extent {
    const MappedFile* file;
    uint64_t offset;
    size_t bytes, at;
  };
  // A part of the group and its pieces.
  struct Part {
    TensorPart of;
    std::array<FilePiece, 2> pieces = {};  // no bytes if the part is absent
    std::array<size_t, 2> at = {};         // position of each piece as read
    size_t joined = 0;                     // position of the part as assembled
  };

  void place_pieces();
  void place_joined();
  std::string tensor_at(const Extent& extent, uint64_t offset) const;

  const TensorDir* dir_;
  std::vector<Extent> extents_;
  std::vector<Part> parts_;
  size_t bytes_ = 0, joined_bytes_ = 0;
  bool scattered_ = false;
};

}  // namespace kvasir
