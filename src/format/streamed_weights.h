// Weights that are read again in every pass: two slots of memory, one in use while the other is filled. Scattered
// tensors are assembled from the filled slot into the other one.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/buffer.h"
#include "format/background_reader.h"
#include "format/scattered_rows.h"
#include "format/weight_source.h"

namespace kvasir {

class StreamedWeights final : public WeightSource {
 public:
  /// Starts to read the first group. total_bytes() returns `total`. Errors: no memory, no thread.
  static Result<std::unique_ptr<WeightSource>> open(std::shared_ptr<const TensorDir> dir, WeightUse use, size_t total,
                                                    BackgroundReader::Options options = {});

  std::unique_lock<Mutex> begin_pass() override { return std::unique_lock(one_pass_); }
  Result<std::span<const std::byte* const>> acquire(int group, int next, ThreadPool& pool) override;
  void release(int group) override;
  Result<void> copy(const TensorInfo& table, uint64_t begin, std::span<std::byte> out) const override;

  size_t resident_bytes() const override { return slots_[0].memory.bytes() + slots_[1].memory.bytes(); }
  size_t total_bytes() const override { return total_; }
  WeightsMode mode() const override { return WeightsMode::streamed; }
  int groups() const override { return static_cast<int>(use_.groups.size()); }

 private:
  // Consecutive bytes of a file, and their position in a slot.
  struct Extent {
    const MappedFile* file;
    uint64_t offset;
    size_t bytes, at;
  };
  // A part of a group and its pieces.
  struct Part {
    std::array<FilePiece, 2> pieces;
    std::array<size_t, 2> at = {};  // position of each piece in a slot
    size_t joined = 0;              // position of the part in the assembled group
  };
  // The positions of a group in a slot: as read and, if it has scattered tensors, as assembled.
  struct Placement {
    std::vector<Extent> extents;
    std::vector<Part> parts;  // an absent part has no bytes
    size_t bytes = 0, joined_bytes = 0;
    bool scattered = false;
  };
  struct Slot {
    Buffer memory;
    int group = -1;       // the group that is there or being read; -1: none
    bool joined = false;  // assembled, or needs no assembling
    bool held = false;
    std::vector<const std::byte*> pointers;
  };

  StreamedWeights(std::shared_ptr<const TensorDir> dir, WeightUse use, size_t total);
  static Placement place(const TensorDir& dir, const std::vector<TensorPart>& group);
  static void place_pieces(const TensorDir& dir, Placement& placement);
  std::string tensor_at(int group, const Extent& extent, uint64_t offset) const;
  void start(Slot& slot, int group);
  void cancel();
  Slot* slot_of(int group);
  Slot& other(const Slot& slot) { return &slot == &slots_[0] ? slots_[1] : slots_[0]; }
  void join(Slot& from, Slot& to, ThreadPool& pool) const;
  Result<void> finish(ThreadPool& pool);

  std::shared_ptr<const TensorDir> dir_;
  WeightUse use_;
  size_t total_;
  std::vector<Placement> placements_;  // [groups]
  // Held from begin_pass() to the end of the pass; only that pass uses the members below. They are not annotated:
  // clang's analysis does not follow a lock that is returned.
  Mutex one_pass_;
  std::array<Slot, 2> slots_;
  Slot* reading_ = nullptr;                   // the slot that the reader fills now
  std::unique_ptr<BackgroundReader> reader_;  // after the slots: its thread ends before they are freed
};

}  // namespace kvasir
