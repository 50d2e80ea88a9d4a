// Double buffering: which slot holds which group, and when the next read begins.
#include "format/streamed_weights.h"

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

// An extent has the same offset within a block in the slot as in the file, so that whole blocks can be read past the
// page cache.
void StreamedWeights::place_pieces(const TensorDir& dir, Placement& placement) {
  std::vector<std::pair<FilePiece, size_t*>> order;
  for (Part& part : placement.parts)
    for (size_t i = 0; i < part.pieces.size(); ++i)
      if (part.pieces[i].bytes > 0) order.emplace_back(part.pieces[i], &part.at[i]);
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first.file, a.first.offset) < std::pair(b.first.file, b.first.offset);
  });
  for (const auto& [piece, at] : order) {
    const MappedFile* file = dir.files[static_cast<size_t>(piece.file)].get();
    Extent* last = placement.extents.empty() ? nullptr : &placement.extents.back();
    if (last == nullptr || last->file != file || piece.offset > last->offset + last->bytes + kNear) {
      placement.extents.push_back({file, piece.offset, 0, placement.bytes + piece.offset % BackgroundReader::kAlign});
      last = &placement.extents.back();
    }
    *at = last->at + (piece.offset - last->offset);
    last->bytes = std::max<size_t>(last->bytes, piece.offset + piece.bytes - last->offset);
    placement.bytes = whole_blocks(last->at + last->bytes);
  }
}

// In an assembled group, scattered tensors come last, one after the other: their blocks have odd sizes and cannot be
// aligned anyway.
StreamedWeights::Placement StreamedWeights::place(const TensorDir& dir, const std::vector<TensorPart>& group) {
  Placement placement;
  for (const TensorPart& part : group) {
    Part& placed = placement.parts.emplace_back();
    if (part.tensor == nullptr) continue;
    placed.pieces = pieces_of(*part.tensor, part.begin, part.bytes);
    placement.scattered |= part.tensor->scattered.has_value();
  }
  place_pieces(dir, placement);
  if (!placement.scattered) return placement;
  for (const bool scattered : {false, true})
    for (size_t i = 0; i < group.size(); ++i) {
      if (group[i].tensor == nullptr || group[i].tensor->scattered.has_value() != scattered) continue;
      if (!scattered) placement.joined_bytes = (placement.joined_bytes + kJoinAlign - 1) / kJoinAlign * kJoinAlign;
      placement.parts[i].joined = placement.joined_bytes;
      placement.joined_bytes += group[i].bytes;
    }
  return placement;
}

StreamedWeights::StreamedWeights(std::shared_ptr<const TensorDir> dir, WeightUse use, size_t total)
    : dir_(std::move(dir)), use_(std::move(use)), total_(total) {
  for (const auto& group : use_.groups) placements_.push_back(place(*dir_, group));
}

Result<std::unique_ptr<WeightSource>> StreamedWeights::open(std::shared_ptr<const TensorDir> dir, WeightUse use,
                                                            size_t total, BackgroundReader::Options options) {
  std::unique_ptr<StreamedWeights> source(new StreamedWeights(std::move(dir), std::move(use), total));
  size_t largest = 0;
  for (const Placement& placement : source->placements_)
    largest = std::max({largest, placement.bytes, placement.joined_bytes});
  for (Slot& slot : source->slots_) {
    KVASIR_TRY(slot.memory, Buffer::allocate(largest, Owner::weights, true));
  }
  KVASIR_TRY(source->reader_, BackgroundReader::create(total, options));
  if (source->groups() > 0) {
    source->start(source->slots_[1], 0);
    if (source->reader_->idle()) source->cancel();
  }
  return source;
}

StreamedWeights::Slot* StreamedWeights::slot_of(int group) {
  for (Slot& slot : slots_)
    if (slot.group == group) return &slot;
  return nullptr;
}

// Starts to read `group` into `slot`. Requires: no read is in progress, the slot is not held.
void StreamedWeights::start(Slot& slot, int group) {
  const Placement& placement = placements_[static_cast<size_t>(group)];
  const auto& parts = use_.groups[static_cast<size_t>(group)];
  reading_ = &slot;
  slot.group = group;
  slot.joined = !placement.scattered;
  slot.pointers.clear();
  for (size_t i = 0; i < parts.size(); ++i)
    slot.pointers.push_back(parts[i].tensor != nullptr ? slot.memory.data() + placement.parts[i].at[0] : nullptr);
  std::vector<FileRead> reads;
  for (const Extent& extent : placement.extents)
    reads.push_back({extent.file, extent.offset, extent.bytes, slot.memory.data() + extent.at});
  reader_->start(reads);
}

// Drops a read that needs no disk: cached bytes are copied when the group is acquired, into the slot that the
// processor's caches hold. Requires: no read from the disk is in progress.
void StreamedWeights::cancel() { std::exchange(reading_, nullptr)->group = -1; }

// Returns the name of the group's tensor at this offset of the file, or of the nearest one before it.
std::string StreamedWeights::tensor_at(int group, const Extent& extent, uint64_t offset) const {
  const auto& tensors = use_.groups[static_cast<size_t>(group)];
  const auto& parts = placements_[static_cast<size_t>(group)].parts;
  std::string found;
  uint64_t nearest = 0;
  for (size_t i = 0; i < parts.size(); ++i)
    for (const FilePiece& piece : parts[i].pieces) {
      if (piece.bytes == 0 || dir_->files[static_cast<size_t>(piece.file)].get() != extent.file) continue;
      if (piece.offset > offset || (!found.empty() && piece.offset <= nearest)) continue;
      nearest = piece.offset;
      found = tensors[i].tensor->name;
    }
  return found;
}

// Assembles the group of `from` in `to`. Afterwards `from` has no group.
void StreamedWeights::join(Slot& from, Slot& to, ThreadPool& pool) const {
  const auto& tensors = use_.groups[static_cast<size_t>(from.group)];
  const Placement& placement = placements_[static_cast<size_t>(from.group)];
  to.pointers.assign(tensors.size(), nullptr);
  pool.run(static_cast<int>(tensors.size()), [&](int i, int) {
    const TensorPart& tensor = tensors[static_cast<size_t>(i)];
    const Part& part = placement.parts[static_cast<size_t>(i)];
    if (tensor.tensor == nullptr) return;
    std::byte* const at = to.memory.data() + part.joined;
    const std::byte *const rows = from.memory.data() + part.at[0], *const scales = from.memory.data() + part.at[1];
    to.pointers[static_cast<size_t>(i)] = at;
    if (tensor.tensor->scattered)
      assemble(*tensor.tensor, tensor.begin, rows, scales, {at, tensor.bytes});
    else
      std::memcpy(at, rows, tensor.bytes);
  });
  to.group = std::exchange(from.group, -1);
  to.joined = true;
}

// Waits for the read in progress. Afterwards the slot has its group or, if the read failed, none.
Result<void> StreamedWeights::finish(ThreadPool& pool) {
  Slot& slot = *std::exchange(reading_, nullptr);
  auto read = reader_->wait(pool);
  if (read) return {};
  const int group = std::exchange(slot.group, -1);
  auto [index, offset, error] = std::move(read).error();
  const Extent& extent = placements_[static_cast<size_t>(group)].extents[index];
  error.what = fmt::format("tensor {}: {}", in_quotes(tensor_at(group, extent, offset)), error.what);
  return tl::unexpected(std::move(error));
}

Result<std::span<const std::byte* const>> StreamedWeights::acquire(int group, int next, ThreadPool& pool) {
  if (group < 0 || group >= groups())
    return fail(Error::internal, fmt::format("weight group {} is out of range, there are {}", group, groups()));
  Slot* slot = slot_of(group);
  if (slot == nullptr) {
    if (reading_ != nullptr) (void)finish(pool);  // its group is not needed any more
    slot = slots_[0].held ? &slots_[1] : &slots_[0];
    if (slot->held) return fail(Error::internal, "two weight groups are held already", "streamed weights");
    start(*slot, group);
  }
  if (reading_ == slot) KVASIR_CHECK(finish(pool));
  if (!slot->joined) {
    if (reading_ != nullptr) (void)finish(pool);
    if (other(*slot).held) return fail(Error::internal, "a weight group is held already", "streamed weights");
    join(*slot, other(*slot), pool);
    slot = &other(*slot);
  }
  slot->held = true;
  Slot& free = other(*slot);
  if (next >= 0 && next < groups() && slot_of(next) == nullptr && !free.held && reading_ == nullptr) {
    start(free, next);
    if (reader_->idle()) cancel();
  }
  return std::span<const std::byte* const>(slot->pointers);
}

void StreamedWeights::release(int group) {
  if (Slot* slot = slot_of(group); slot != nullptr) slot->held = false;
}

Result<void> StreamedWeights::copy(const TensorInfo& table, uint64_t begin, std::span<std::byte> out) const {
  return read_tensor(*dir_, table, begin, out);
}

}  // namespace kvasir
