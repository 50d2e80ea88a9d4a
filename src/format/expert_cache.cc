// Which experts stay. An expert's rank is the number of its uses since it was read, plus the rank of the last one that
// had to go (LFU with dynamic aging: Arlitt et al., "Evaluating content management techniques for Web proxy caches",
// 2000), so an expert that was popular long ago goes at last.
#include "format/expert_cache.h"

#include <algorithm>
#include <utility>

namespace kvasir {
namespace {

constexpr size_t kLeastBatch = 8;  // experts in one job of the reader

}  // namespace

ExpertCache::ExpertCache(std::shared_ptr<const TensorDir> dir, const Parts& parts, std::shared_ptr<Budget> budget)
    : dir_(std::move(dir)), budget_(std::move(budget)), groups_(parts.size()) {
  for (size_t g = 0; g < parts.size(); ++g)
    for (const auto& expert : parts[g]) {
      groups_[g].push_back({GroupPlacement(*dir_, expert)});
      slot_bytes_ = std::max(slot_bytes_, whole_pages(groups_[g].back().placement.bytes()));
    }
}

Result<std::shared_ptr<ExpertCache>> ExpertCache::create(std::shared_ptr<const TensorDir> dir, const Parts& parts,
                                                         int used, size_t total, std::shared_ptr<Budget> budget,
                                                         const BackgroundReader::Options& options) {
  std::shared_ptr<ExpertCache> cache(new ExpertCache(std::move(dir), parts, std::move(budget)));
  cache->batch_ = std::max(static_cast<size_t>(used), kLeastBatch);
  KVASIR_CHECK(cache->add_fixed_slots(2 * used));
  KVASIR_TRY(cache->reader_, BackgroundReader::create(total, options));
  return cache;
}

Result<void> ExpertCache::add_fixed_slots(int count) {
  const MutexLock lock(mutex_);
  for (int i = 0; i < count; ++i) {
    KVASIR_TRY(Buffer memory, Buffer::allocate(slot_bytes_, Owner::weights));
    free_.push_back(static_cast<int>(slots_.size()));
    slots_.emplace_back().memory = std::move(memory);
  }
  return {};
}

// ---- slots

void ExpertCache::set_rank(int index, double rank) {
  Slot& changed = slot(index);
  order_.erase({changed.rank, index});
  changed.rank = rank;
  order_.emplace(rank, index);
}

// Removes what is in a slot; the slot is free then.
void ExpertCache::clear(int index) {
  Slot& cleared = slot(index);
  order_.erase({cleared.rank, index});
  if (cleared.expert != nullptr && cleared.expert->slot == index) cleared.expert->slot = -1;
  cleared.expert = nullptr;
  cleared.uses = 0;
  cleared.in_use = false;
  free_.push_back(index);
}

// Allocates a slot if the budget has room; -1: it has none.
int ExpertCache::new_slot() {
  if (budget_ == nullptr || !budget_->limited() || budget_->left() < slot_bytes_) return -1;
  auto share = budget_->take(slot_bytes_, "weights", "kept experts need", "");
  if (!share) return -1;
  auto memory = Buffer::allocate(slot_bytes_, Owner::weights);
  if (!memory) return -1;
  if (gone_.empty()) {
    gone_.push_back(static_cast<int>(slots_.size()));
    slots_.emplace_back();
  }
  const int index = gone_.back();
  gone_.pop_back();
  slot(index).memory = std::move(*memory);
  slot(index).share = std::move(*share);
  return index;
}

// Empties the slot of the lowest rank that is not in use; -1: all are.
int ExpertCache::evict() {
  for (const auto& [rank, index] : order_) {
    if (slot(index).in_use) continue;
    age_ = rank;
    const int evicted = index;
    clear(evicted);
    free_.pop_back();
    return evicted;
  }
  return -1;
}

int ExpertCache::slot_to_fill() {
  if (!free_.empty()) {
    const int index = free_.back();
    free_.pop_back();
    return index;
  }
  const int index = new_slot();
  return index >= 0 ? index : evict();
}

// ---- reading

// Asks for one byte in the middle.
bool ExpertCache::comes_from_disk(const Expert& expert) {
  const FileRead read = expert.placement.reads(nullptr).front();
  return !read.file->cached(read.offset + read.bytes / 2);
}

// Starts to read absent ones of these experts, at most a batch, and as many as there are slots for. Reads guesses only
// from the disk: to copy from the page cache takes the threads that compute.
void ExpertCache::start(std::vector<Expert>& group, std::span<const int> experts, bool guessing) {
  std::vector<FileRead> reads;
  {
    const MutexLock lock(mutex_);
    for (const int e : experts) {
      Expert& absent = group[static_cast<size_t>(e)];
      if (absent.slot >= 0 || (guessing && !comes_from_disk(absent))) continue;
      const int index = reading_.size() < batch_ ? slot_to_fill() : -1;
      if (index < 0) break;
      slot(index).in_use = true;
      slot(index).expert = &absent;
      slot(index).guessed = guessing;
      reading_.push_back({&absent, index});
      const auto more = absent.placement.reads(slot(index).memory.data());
      reads.insert(reads.end(), more.begin(), more.end());
    }
    (guessing ? stats_.guessed : stats_.read) += static_cast<int64_t>(reading_.size());
  }
  guessing_ = guessing;
  if (!reading_.empty()) reader_->start(reads);
}

// Waits for the job in progress, if there is one. Afterwards its experts are in memory or, if it failed, none of them.
Result<void> ExpertCache::finish(ThreadPool& pool) {
  if (reading_.empty()) return {};
  auto done = reader_->wait(pool);
  const std::vector<Read> reads = std::exchange(reading_, {});
  const MutexLock lock(mutex_);
  for (const auto& [expert, index] : reads) {
    if (!done) {
      clear(index);
      continue;
    }
    expert->slot = index;
    slot(index).in_use = false;
    slot(index).pointers = expert->placement.pointers(slot(index).memory.data());
    set_rank(index, age_);
  }
  if (done || guessing_) return {};  // a guess that failed is read again when it is wanted
  BackgroundReader::Failure failure = std::move(done).error();
  size_t first = 0;
  for (const auto& [expert, index] : reads) {
    const size_t count = expert->placement.reads(nullptr).size();
    if (failure.read < first + count) {
      failure.read -= first;
      return tl::unexpected(expert->placement.explain(std::move(failure)));
    }
    first += count;
  }
  return tl::unexpected(std::move(failure.error));
}

// ---- a layer's experts

void ExpertCache::want(int group, std::span<const int> experts) {
  release_provided();
  group_ = &groups_[static_cast<size_t>(group)];
  wanted_.assign(experts.begin(), experts.end());
  {
    const MutexLock lock(mutex_);
    stats_.used += static_cast<int64_t>(wanted_.size());
  }
  provide_present();
  fresh_ = true;
  if (reading_.empty()) start(*group_, wanted_, false);
}

// Moves the wanted experts that are in memory to loaded_.
void ExpertCache::provide_present() {
  const MutexLock lock(mutex_);
  std::erase_if(wanted_, [&](int e) KVASIR_REQUIRES(mutex_) {
    const int index = (*group_)[static_cast<size_t>(e)].slot;
    if (index < 0) return false;
    Slot& present = slot(index);
    present.in_use = true;
    ++present.uses;
    stats_.guesses_used += std::exchange(present.guessed, false) ? 1 : 0;
    set_rank(index, age_ + present.uses);
    loaded_.push_back({e, present.pointers});
    provided_.push_back(index);
    return true;
  });
}

void ExpertCache::release_provided() {
  const MutexLock lock(mutex_);
  for (const int index : provided_) slot(index).in_use = false;
  provided_.clear();
  loaded_.clear();
}

Result<std::span<const ExpertCache::Loaded>> ExpertCache::next(ThreadPool& pool) {
  if (fresh_) {
    fresh_ = false;
    if (!loaded_.empty()) return std::span<const Loaded>(loaded_);
  }
  release_provided();
  while (!wanted_.empty() && loaded_.empty()) {
    if (reading_.empty()) start(*group_, wanted_, false);
    if (auto read = finish(pool); !read) {
      wanted_.clear();
      return tl::unexpected(std::move(read).error());
    }
    provide_present();
  }
  if (!wanted_.empty()) start(*group_, wanted_, false);
  return std::span<const Loaded>(loaded_);
}

// Guesses cost reading that may be in vain. Where most were wrong, only a few are made, to notice if that changes.
bool ExpertCache::guesses_pay() {
  constexpr double kForget = 0.98;
  constexpr int kTryAgain = 64;
  const MutexLock lock(mutex_);
  const auto made = static_cast<double>(stats_.guessed - seen_.guessed);
  const auto right = static_cast<double>(stats_.guesses_used - seen_.guesses_used);
  seen_ = stats_;
  made_ = kForget * made_ + made;
  right_ = kForget * right_ + right;
  return right_ >= made_ / 2 || ++declined_ % kTryAgain == 0;
}

void ExpertCache::guess(int group, std::span<const int> experts) {
  if (!guesses_pay()) return;
  start(groups_[static_cast<size_t>(group)], experts, true);
}

// ---- memory

size_t ExpertCache::bytes() const {
  const MutexLock lock(mutex_);
  return (slots_.size() - gone_.size()) * slot_bytes_;
}

ExpertStats ExpertCache::stats() const {
  const MutexLock lock(mutex_);
  return stats_;
}

bool ExpertCache::give_back(size_t bytes) {
  const MutexLock lock(mutex_);
  size_t freed = 0;
  const auto free_slot = [&](int index) KVASIR_REQUIRES(mutex_) {
    slot(index).memory = Buffer();
    slot(index).share.reset();
    gone_.push_back(index);
    freed += slot_bytes_;
  };
  std::erase_if(free_, [&](int index) KVASIR_REQUIRES(mutex_) {
    if (freed >= bytes || slot(index).share == nullptr) return false;
    free_slot(index);
    return true;
  });
  std::vector<int> lowest;
  for (const auto& [rank, index] : order_)
    if (!slot(index).in_use && slot(index).share != nullptr) lowest.push_back(index);
  for (const int index : lowest) {
    if (freed >= bytes) break;
    clear(index);
    free_.pop_back();
    free_slot(index);
  }
  return freed > 0;
}

size_t ExpertCache::spare_bytes() const {
  const MutexLock lock(mutex_);
  size_t bytes = 0;
  for (const Slot& each : slots_)
    if (each.share != nullptr && !each.in_use) bytes += slot_bytes_;
  return bytes;
}

}  // namespace kvasir
