// Weights that are read again in every pass: two slots of memory, one in use while the other is filled. Scattered
// tensors are put together from the slot that was filled into the other one.
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
  /// Begins to read the first group. `total` is what total_bytes() gives. Errors: no memory, no thread.
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
  // Consecutive bytes of a file, and where in a slot they go.
  struct Extent {
    const MappedFile* file;
    uint64_t offset;
    size_t bytes, at;
  };
  // A part of a group and its pieces.
  struct Part {
    std::array<FilePiece, 2> pieces;
    std::array<size_t, 2> at = {};  // where each piece is
    size_t joined = 0;              // where the part is once the group is put together
  };
  // How a group lies in a slot as it is read and, where it has scattered tensors, once it is put together.
  struct Placement {
    std::vector<Extent> extents;
    std::vector<Part> parts;  // of an absent one: without bytes
    size_t bytes = 0, joined_bytes = 0;
    bool scattered = false;
  };
  struct Slot {
    Buffer memory;
    int group = -1;       // what is there, or being read; -1: nothing of use
    bool joined = false;  // put together, or nothing had to be
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
  // Held from begin_pass() to the end of the pass, which alone uses what follows. The lock is returned, which the
  // analysis of clang does not follow, so no member says so.
  Mutex one_pass_;
  std::array<Slot, 2> slots_;
  Slot* reading_ = nullptr;                   // the slot that the reader fills now
  std::unique_ptr<BackgroundReader> reader_;  // after the slots: its thread ends before they are freed
};

}  // namespace kvasir
