// Weights that are read again in every pass: two slots of memory, one in use while the other is filled. A budget's
// spare memory keeps some groups, which are read only once. Scattered tensors are assembled from the filled slot into
// other memory.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/buffer.h"
#include "format/background_reader.h"
#include "format/expert_cache.h"
#include "format/group_placement.h"
#include "format/kept_groups.h"
#include "format/weight_source.h"

namespace kvasir {

class StreamedWeights final : public WeightSource {
 public:
  /// Starts to read the first group. total_bytes() returns `total`. Groups and experts are kept in what `budget` has
  /// left; null: none. Errors: no memory, no thread.
  static Result<std::unique_ptr<WeightSource>> open(std::shared_ptr<const TensorDir> dir, WeightUse use, size_t total,
                                                    std::shared_ptr<Budget> budget = {},
                                                    BackgroundReader::Options options = {});

  std::unique_lock<Mutex> begin_pass() override;
  Result<std::span<const std::byte* const>> acquire(int group, int next, ThreadPool& pool) override;
  std::span<const std::byte* const> peek(int group) override;
  void release(int group) override;
  Result<void> copy(const TensorInfo& table, uint64_t begin, std::span<std::byte> out) const override;
  ExpertCache* experts() const override { return experts_.get(); }
  std::vector<std::shared_ptr<SpareMemory>> spare() const override;

  size_t resident_bytes() const override;
  size_t total_bytes() const override { return total_; }
  WeightsMode mode() const override { return WeightsMode::streamed; }
  int groups() const override { return static_cast<int>(placements_.size()); }

 private:
  // A group in memory: in one of the two slots, or kept.
  struct Place {
    std::byte* memory = nullptr;
    int group = -1;       // the group that is there or being read; -1: none
    bool joined = false;  // assembled, or needs no assembling
    bool held = false;
    std::vector<const std::byte*> pointers;
  };

  StreamedWeights(std::shared_ptr<const TensorDir> dir, const WeightUse& use, size_t total,
                  const std::shared_ptr<Budget>& budget);
  Result<void> allocate_slots();
  const GroupPlacement& placement(int group) const { return placements_[static_cast<size_t>(group)]; }
  void start(Place& place, int group);
  void cancel();
  Place* place_of(int group);
  Place* kept_place(int group);
  Place* free_slot();
  int next_to_read(int group) const;
  void read_ahead(int group);
  Result<Place*> joined(Place& from, ThreadPool& pool);
  Result<void> finish(ThreadPool& pool);

  std::shared_ptr<const TensorDir> dir_;
  size_t total_;
  std::vector<GroupPlacement> placements_;  // [groups]
  std::shared_ptr<KeptGroups> kept_;
  std::shared_ptr<ExpertCache> experts_;  // null: experts are read with their group
  // Held from begin_pass() to the end of the pass; only that pass uses the members below. They are not annotated:
  // clang's analysis does not follow a lock that is returned.
  Mutex one_pass_;
  std::array<Buffer, 2> memory_;
  std::array<Place, 2> slots_;
  std::vector<Place> kept_places_;            // [groups]
  Place* reading_ = nullptr;                  // the place that the reader fills now
  std::unique_ptr<BackgroundReader> reader_;  // after the memory: its thread ends before that is freed
};

}  // namespace kvasir
