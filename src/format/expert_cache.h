// The experts of a model whose weights are streamed: only those that a pass chooses are read, and those used most stay
// in memory, as long as a budget has room for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/budget.h"
#include "base/buffer.h"
#include "base/mutex.h"
#include "base/spare_memory.h"
#include "format/background_reader.h"
#include "format/group_placement.h"

namespace kvasir {

/// Counters since the source was opened.
struct ExpertStats {
  int64_t used = 0;          ///< experts that passes asked for, each once per pass and layer
  int64_t read = 0;          ///< those of them that were read from a file
  int64_t guessed = 0;       ///< experts read before they were asked for
  int64_t guesses_used = 0;  ///< those of them that were then asked for
};

/// The methods of a pass are for one thread at a time; those of SpareMemory and stats() are for every thread.
class ExpertCache final : public SpareMemory {
 public:
  using Parts = std::vector<std::vector<std::vector<TensorPart>>>;  // [groups][experts][parts]

  /// Allocates memory for the experts that two tokens use, which it never gives back. `total`: as for
  /// BackgroundReader. Errors: no memory, no thread.
  static Result<std::shared_ptr<ExpertCache>> create(std::shared_ptr<const TensorDir> dir, const Parts& parts, int used,
                                                     size_t total, std::shared_ptr<Budget> budget,
                                                     const BackgroundReader::Options& options);

  /// An expert in memory, until the next call of next().
  struct Loaded {
    int expert;
    std::span<const std::byte* const> parts;  ///< addresses
  };
  /// Asks for experts of a group; next() then provides each of them once. Starts to read those that are absent.
  void want(int group, std::span<const int> experts);
  /// Some of the wanted experts, those in memory first; empty when all were provided. Errors: a failed read, naming the
  /// tensor, the file and the offset; nothing is wanted then.
  Result<std::span<const Loaded>> next(ThreadPool& pool);
  /// Whether next() has returned all wanted experts, so that guess() can read.
  bool all_provided() const { return wanted_.empty() && reading_.empty(); }
  /// Starts to read experts that will probably be wanted soon, if they come from the disk. Requires: all_provided().
  void guess(int group, std::span<const int> experts);

  size_t bytes() const;
  ExpertStats stats() const;
  bool give_back(size_t bytes) override;
  size_t spare_bytes() const override;

 private:
  struct Expert {
    GroupPlacement placement;
    int slot = -1;  // -1: not in memory
  };
  struct Slot {
    Buffer memory;             // empty: given back
    BudgetSharePtr share;      // null: one of the slots that are never given back
    Expert* expert = nullptr;  // null: nothing is there
    std::vector<const std::byte*> pointers;
    int uses = 0;
    bool guessed = false;  // read before it was asked for, and not asked for yet
    double rank = 0;       // the lowest goes first
    bool in_use = false;   // being read, or provided by next()
  };
  struct Read {
    Expert* expert;
    int slot;
  };

  ExpertCache(std::shared_ptr<const TensorDir> dir, const Parts& parts, std::shared_ptr<Budget> budget);
  Result<void> add_fixed_slots(int count);
  Slot& slot(int index) KVASIR_REQUIRES(mutex_) { return slots_[static_cast<size_t>(index)]; }
  int slot_to_fill() KVASIR_REQUIRES(mutex_);
  int new_slot() KVASIR_REQUIRES(mutex_);
  int evict() KVASIR_REQUIRES(mutex_);
  void set_rank(int index, double rank) KVASIR_REQUIRES(mutex_);
  void clear(int index) KVASIR_REQUIRES(mutex_);
  static bool comes_from_disk(const Expert& expert);
  void provide_present();
  void release_provided();
  void start(std::vector<Expert>& group, std::span<const int> experts, bool guessing);
  Result<void> finish(ThreadPool& pool);
  bool guesses_pay();

  const std::shared_ptr<const TensorDir> dir_;
  const std::shared_ptr<Budget> budget_;
  std::vector<std::vector<Expert>> groups_;  // Expert::slot is guarded by mutex_
  size_t slot_bytes_ = 0, batch_ = 0;

  // The pass's own.
  std::vector<Expert>* group_ = nullptr;
  std::vector<int> wanted_;     // not yet provided
  std::vector<Loaded> loaded_;  // what next() returns
  std::vector<int> provided_;   // the slots of loaded_
  bool fresh_ = false;          // next() has not returned loaded_ yet
  std::vector<Read> reading_;   // what the reader fills now
  bool guessing_ = false;       // reading_ was not asked for

  ExpertStats seen_;             // at the last guess
  double made_ = 0, right_ = 0;  // guesses, and those used, recent ones counting most
  int declined_ = 0;

  mutable Mutex mutex_;
  std::vector<Slot> slots_ KVASIR_GUARDED_BY(mutex_);
  std::vector<int> free_ KVASIR_GUARDED_BY(mutex_);                   // slots with memory and without an expert
  std::vector<int> gone_ KVASIR_GUARDED_BY(mutex_);                   // slots without memory
  std::set<std::pair<double, int>> order_ KVASIR_GUARDED_BY(mutex_);  // slots with an expert, by rank
  double age_ KVASIR_GUARDED_BY(mutex_) = 0;                          // rank of the last expert that had to go
  ExpertStats stats_ KVASIR_GUARDED_BY(mutex_);
  std::unique_ptr<BackgroundReader> reader_;  // after the slots: its thread ends before they are freed
};

}  // namespace kvasir
