// Double buffering: which place holds which group, and when the next read begins.
#include "format/streamed_weights.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace kvasir {
namespace {

// Bytes of each group where it is kept.
std::vector<size_t> kept_bytes(const std::vector<GroupPlacement>& placements) {
  std::vector<size_t> bytes;
  for (const GroupPlacement& p : placements) bytes.push_back(p.scattered() ? p.joined_bytes() : p.bytes());
  return bytes;
}

}  // namespace

StreamedWeights::StreamedWeights(std::shared_ptr<const TensorDir> dir, const WeightUse& use, size_t total,
                                 const std::shared_ptr<Budget>& budget)
    : dir_(std::move(dir)), total_(total), kept_places_(use.groups.size()) {
  for (const auto& group : use.groups) placements_.emplace_back(*dir_, group);
  kept_ = std::make_shared<KeptGroups>(kept_bytes(placements_), budget);
}

Result<void> StreamedWeights::allocate_slots() {
  size_t largest = 0;
  for (const GroupPlacement& p : placements_) largest = std::max({largest, p.bytes(), p.joined_bytes()});
  for (size_t i = 0; i < slots_.size(); ++i) {
    KVASIR_TRY(memory_[i], Buffer::allocate(largest, Owner::weights, true));
    slots_[i].memory = memory_[i].data();
  }
  return {};
}

Result<std::unique_ptr<WeightSource>> StreamedWeights::open(std::shared_ptr<const TensorDir> dir, WeightUse use,
                                                            size_t total, std::shared_ptr<Budget> budget,
                                                            BackgroundReader::Options options) {
  std::unique_ptr<StreamedWeights> source(new StreamedWeights(dir, use, total, budget));
  KVASIR_CHECK(source->allocate_slots());
  KVASIR_TRY(source->reader_, BackgroundReader::create(total, options));
  if (!use.experts.empty()) {
    KVASIR_TRY(source->experts_,
               ExpertCache::create(std::move(dir), use.experts, use.experts_used, total, std::move(budget), options));
  }
  if (source->groups() > 0) source->read_ahead(0);
  return source;
}

std::unique_lock<Mutex> StreamedWeights::begin_pass() {
  std::unique_lock lock(one_pass_);
  kept_->plan();
  return lock;
}

size_t StreamedWeights::resident_bytes() const {
  return memory_[0].bytes() + memory_[1].bytes() + kept_->bytes() + (experts_ != nullptr ? experts_->bytes() : 0);
}

std::vector<std::shared_ptr<SpareMemory>> StreamedWeights::spare() const {
  if (experts_ != nullptr) return {experts_, kept_};
  return {kept_};
}

// The place of a kept group, in use from now on; null if the group is not kept.
StreamedWeights::Place* StreamedWeights::kept_place(int group) {
  Place& place = kept_places_[static_cast<size_t>(group)];
  const auto [memory, fresh] = kept_->use(group);
  if (memory == nullptr || fresh) place = {};
  place.memory = memory;
  return memory != nullptr ? &place : nullptr;
}

StreamedWeights::Place* StreamedWeights::place_of(int group) {
  for (Place& slot : slots_)
    if (slot.group == group) return &slot;
  Place* const kept = kept_place(group);
  return kept != nullptr && kept->group == group ? kept : nullptr;
}

// A slot that nobody holds and no read fills; null if there is none.
StreamedWeights::Place* StreamedWeights::free_slot() {
  for (Place& slot : slots_)
    if (!slot.held && reading_ != &slot) return &slot;
  return nullptr;
}

// Starts to read `group` into `place`. Requires: no read is in progress, the place is not held.
void StreamedWeights::start(Place& place, int group) {
  reading_ = &place;
  place.group = group;
  place.joined = !placement(group).scattered();
  place.pointers = placement(group).pointers(place.memory);
  reader_->start(placement(group).reads(place.memory));
}

// Drops a read that needs no disk: cached bytes are copied when the group is acquired, into the slot that the
// processor's caches hold. Requires: no read from the disk is in progress.
void StreamedWeights::cancel() { std::exchange(reading_, nullptr)->group = -1; }

// Waits for the read in progress. Afterwards the place has its group or, if the read failed, none.
Result<void> StreamedWeights::finish(ThreadPool& pool) {
  Place& place = *std::exchange(reading_, nullptr);
  auto read = reader_->wait(pool);
  if (read) return {};
  return tl::unexpected(placement(std::exchange(place.group, -1)).explain(std::move(read).error()));
}

// Assembles the group of `from` where it is kept, or in the other slot, and returns that place.
Result<StreamedWeights::Place*> StreamedWeights::joined(Place& from, ThreadPool& pool) {
  const int group = from.group;
  Place* to = kept_place(group);
  if (to == nullptr) to = &from == &slots_[0] ? &slots_[1] : &slots_[0];
  if (to->held) return fail(Error::internal, "a weight group is held already", "streamed weights");
  to->pointers = placement(group).join(from.memory, to->memory, pool);
  to->group = std::exchange(from.group, -1);
  to->joined = true;
  return to;
}

// The group to read ahead if `group` is the next one: the first that is not in memory. Groups follow one another in
// turn.
int StreamedWeights::next_to_read(int group) const {
  for (int i = 0; i < groups(); ++i, group = (group + 1) % groups()) {
    const bool kept = kept_->has(group) && kept_places_[static_cast<size_t>(group)].group == group;
    if (!kept) return group;
  }
  return -1;
}

// Starts to read the next group that is not in memory, if it comes from the disk.
void StreamedWeights::read_ahead(int group) {
  const int next = next_to_read(group);
  if (next < 0 || reading_ != nullptr || slots_[0].group == next || slots_[1].group == next) return;
  Place* place = placement(next).scattered() ? nullptr : kept_place(next);
  if (place == nullptr) place = free_slot();
  if (place == nullptr) return;
  start(*place, next);
  if (reader_->idle()) cancel();
}

Result<std::span<const std::byte* const>> StreamedWeights::acquire(int group, int next, ThreadPool& pool) {
  if (group < 0 || group >= groups())
    return fail(Error::internal, fmt::format("weight group {} is out of range, there are {}", group, groups()));
  Place* place = place_of(group);
  if (place == nullptr) {
    if (reading_ != nullptr) (void)finish(pool);  // its group is needed later, or not any more
    if (!placement(group).scattered()) place = kept_place(group);
    if (place == nullptr) place = free_slot();
    if (place == nullptr) return fail(Error::internal, "two weight groups are held already", "streamed weights");
    start(*place, group);
  }
  if (reading_ == place) KVASIR_CHECK(finish(pool));
  if (!place->joined) {
    if (reading_ != nullptr) (void)finish(pool);
    KVASIR_TRY(place, joined(*place, pool));
  }
  place->held = true;
  if (next >= 0 && next < groups()) read_ahead(next);
  return std::span<const std::byte* const>(place->pointers);
}

std::span<const std::byte* const> StreamedWeights::peek(int group) {
  const Place* const place = place_of(group);
  if (place == nullptr || place == reading_ || !place->joined) return {};
  return place->pointers;
}

void StreamedWeights::release(int group) {
  for (Place& slot : slots_)
    if (slot.group == group) slot.held = false;
  kept_places_[static_cast<size_t>(group)].held = false;
  kept_->done(group);
}

Result<void> StreamedWeights::copy(const TensorInfo& table, uint64_t begin, std::span<std::byte> out) const {
  return read_tensor(*dir_, table, begin, out);
}

}  // namespace kvasir
