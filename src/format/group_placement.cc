// Joins neighbouring parts of a file into one read.
#include "format/group_placement.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/quote.h"

namespace kvasir {
namespace {

// Parts at most this many bytes apart in their file are read together, with the bytes between them.
constexpr uint64_t kNear = 16 << 10;

constexpr size_t kJoinAlign = 64;  // of contiguous tensors in an assembled group

constexpr size_t whole_blocks(size_t n) {
  return (n + BackgroundReader::kAlign - 1) / BackgroundReader::kAlign * BackgroundReader::kAlign;
}

}  // namespace

GroupPlacement::GroupPlacement(const TensorDir& dir, std::vector<TensorPart> group) : dir_(&dir) {
  for (const TensorPart& part : group) {
    Part& placed = parts_.emplace_back(Part{.of = part});
    if (part.tensor == nullptr) continue;
    placed.pieces = pieces_of(*part.tensor, part.begin, part.bytes);
    scattered_ |= part.tensor->scattered.has_value();
  }
  place_pieces();
  if (scattered_) place_joined();
}

// An extent has the same offset within a block in memory as in the file, so that whole blocks can be read past the page
// cache.
void GroupPlacement::place_pieces() {
  std::vector<std::pair<FilePiece, size_t*>> order;
  for (Part& part : parts_)
    for (size_t i = 0; i < part.pieces.size(); ++i)
      if (part.pieces[i].bytes > 0) order.emplace_back(part.pieces[i], &part.at[i]);
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first.file, a.first.offset) < std::pair(b.first.file, b.first.offset);
  });
  for (const auto& [piece, at] : order) {
    const MappedFile* file = dir_->files[static_cast<size_t>(piece.file)].get();
    Extent* last = extents_.empty() ? nullptr : &extents_.back();
    if (last == nullptr || last->file != file || piece.offset > last->offset + last->bytes + kNear) {
      extents_.push_back({file, piece.offset, 0, bytes_ + piece.offset % BackgroundReader::kAlign});
      last = &extents_.back();
    }
    *at = last->at + (piece.offset - last->offset);
    last->bytes = std::max<size_t>(last->bytes, piece.offset + piece.bytes - last->offset);
    bytes_ = whole_blocks(last->at + last->bytes);
  }
}

// Scattered tensors come last, one after the other: their blocks have odd sizes and cannot be aligned anyway.
void GroupPlacement::place_joined() {
  for (const bool scattered : {false, true})
    for (Part& part : parts_) {
      if (part.of.tensor == nullptr || part.of.tensor->scattered.has_value() != scattered) continue;
      if (!scattered) joined_bytes_ = (joined_bytes_ + kJoinAlign - 1) / kJoinAlign * kJoinAlign;
      part.joined = joined_bytes_;
      joined_bytes_ += part.of.bytes;
    }
}

std::vector<FileRead> GroupPlacement::reads(std::byte* memory) const {
  std::vector<FileRead> reads;
  for (const Extent& extent : extents_) reads.push_back({extent.file, extent.offset, extent.bytes, memory + extent.at});
  return reads;
}

std::vector<const std::byte*> GroupPlacement::pointers(const std::byte* memory) const {
  std::vector<const std::byte*> pointers;
  for (const Part& part : parts_) pointers.push_back(part.of.tensor != nullptr ? memory + part.at[0] : nullptr);
  return pointers;
}

std::vector<const std::byte*> GroupPlacement::join(const std::byte* memory, std::byte* to, ThreadPool& pool) const {
  std::vector<const std::byte*> pointers(parts_.size(), nullptr);
  pool.run(static_cast<int>(parts_.size()), [&](int i, int) {
    const Part& part = parts_[static_cast<size_t>(i)];
    if (part.of.tensor == nullptr) return;
    std::byte* const at = to + part.joined;
    const std::byte *const rows = memory + part.at[0], *const scales = memory + part.at[1];
    pointers[static_cast<size_t>(i)] = at;
    if (part.of.tensor->scattered)
      assemble(*part.of.tensor, part.of.begin, rows, scales, {at, part.of.bytes});
    else
      std::memcpy(at, rows, part.of.bytes);
  });
  return pointers;
}

Error GroupPlacement::explain(BackgroundReader::Failure failure) const {
  Error error = std::move(failure.error);
  error.what = fmt::format("tensor {}: {}", in_quotes(tensor_at(extents_[failure.read], failure.offset)), error.what);
  return error;
}

// Returns the name of the tensor at this offset of the file, or of the nearest one before it.
std::string GroupPlacement::tensor_at(const Extent& extent, uint64_t offset) const {
  std::string found;
  uint64_t nearest = 0;
  for (const Part& part : parts_)
    for (const FilePiece& piece : part.pieces) {
      if (piece.bytes == 0 || dir_->files[static_cast<size_t>(piece.file)].get() != extent.file) continue;
      if (piece.offset > offset || (!found.empty() && piece.offset <= nearest)) continue;
      nearest = piece.offset;
      found = part.of.tensor->name;
    }
  return found;
}

}  // namespace kvasir
