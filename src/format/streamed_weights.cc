// Double buffering: which slot holds which group, and when the next read begins.
#include "format/streamed_weights.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/quote.h"

namespace kvasir {
namespace {

// Parts that lie so near to one another in their file are read in one go, with what is between them.
constexpr uint64_t kNear = 16 << 10;

constexpr size_t whole_blocks(size_t n) {
  return (n + BackgroundReader::kAlign - 1) / BackgroundReader::kAlign * BackgroundReader::kAlign;
}

}  // namespace

// An extent starts as far into a block of the slot as it does in a block of the file, so that whole blocks can be read
// past the page cache.
StreamedWeights::Placement StreamedWeights::place(const TensorDir& dir, const std::vector<TensorPart>& group) {
  Placement placement;
  placement.parts.resize(group.size());
  std::vector<size_t> order;
  for (size_t i = 0; i < group.size(); ++i)
    if (group[i].tensor != nullptr) order.push_back(i);
  const auto start = [&](size_t i) { return group[i].tensor->offset + group[i].begin; };
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(group[a].tensor->file, start(a)) < std::pair(group[b].tensor->file, start(b));
  });
  for (const size_t i : order) {
    const MappedFile* file = dir.files[static_cast<size_t>(group[i].tensor->file)].get();
    Extent* last = placement.extents.empty() ? nullptr : &placement.extents.back();
    if (last == nullptr || last->file != file || start(i) > last->offset + last->bytes + kNear) {
      placement.extents.push_back({file, start(i), 0, placement.bytes + start(i) % BackgroundReader::kAlign});
      last = &placement.extents.back();
    }
    placement.parts[i] = last->at + (start(i) - last->offset);
    last->bytes = std::max<size_t>(last->bytes, start(i) + group[i].bytes - last->offset);
    placement.bytes = whole_blocks(last->at + last->bytes);
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
  for (const Placement& placement : source->placements_) largest = std::max(largest, placement.bytes);
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

// Requires: no read is under way, the slot is not held.
void StreamedWeights::start(Slot& slot, int group) {
  const Placement& placement = placements_[static_cast<size_t>(group)];
  const auto& parts = use_.groups[static_cast<size_t>(group)];
  reading_ = &slot;
  slot.group = group;
  slot.pointers.clear();
  for (size_t i = 0; i < parts.size(); ++i)
    slot.pointers.push_back(parts[i].tensor != nullptr ? slot.memory.data() + placement.parts[i] : nullptr);
  std::vector<FileRead> reads;
  for (const Extent& extent : placement.extents)
    reads.push_back({extent.file, extent.offset, extent.bytes, slot.memory.data() + extent.at});
  reader_->start(reads);
}

// What only has to be copied is copied when it is wanted, into the slot that the processor's caches hold.
// Requires: no read from the disk is under way.
void StreamedWeights::cancel() { std::exchange(reading_, nullptr)->group = -1; }

// The group's tensor at this offset of the file, or the one before.
std::string StreamedWeights::tensor_at(int group, const Extent& extent, uint64_t offset) const {
  const TensorInfo* found = nullptr;
  for (const TensorPart& part : use_.groups[static_cast<size_t>(group)])
    if (part.tensor != nullptr && dir_->files[static_cast<size_t>(part.tensor->file)].get() == extent.file &&
        part.tensor->offset <= offset && (found == nullptr || part.tensor->offset > found->offset))
      found = part.tensor;
  return found != nullptr ? found->name : "";
}

// Waits for the read that is under way; afterwards the slot has its group, or nothing of use.
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
    if (reading_ != nullptr) (void)finish(pool);  // a group that nobody wants any more
    slot = slots_[0].held ? &slots_[1] : &slots_[0];
    if (slot->held) return fail(Error::internal, "two weight groups are held already", "streamed weights");
    start(*slot, group);
  }
  if (reading_ == slot) KVASIR_CHECK(finish(pool));
  slot->held = true;
  Slot& other = slot == &slots_[0] ? slots_[1] : slots_[0];
  if (next >= 0 && next < groups() && slot_of(next) == nullptr && !other.held && reading_ == nullptr) {
    start(other, next);
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
