// Provides a model's weights while it runs. Tensors come in groups (one per layer, for instance) that are acquired,
// used and released one after the other, so that a source may hold only a few of them; tables are looked up by row and
// never acquired. Knows no model: the caller makes the groups.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>  // unique_lock
#include <span>
#include <string_view>
#include <vector>

#include <kvasir/catalog.h>
#include <kvasir/result.h>

#include "base/budget.h"
#include "base/mutex.h"
#include "base/spare_memory.h"
#include "base/thread_pool.h"
#include "format/tensor_file.h"

namespace kvasir {

/// Consecutive bytes of a tensor. Null: a tensor that this model does not have.
struct TensorPart {
  const TensorInfo* tensor = nullptr;
  uint64_t begin = 0, bytes = 0;

  static TensorPart all_of(const TensorInfo* tensor) { return {tensor, 0, tensor == nullptr ? 0 : tensor->bytes}; }
};

class ExpertCache;

/// The parts and tables that a source is opened for.
struct WeightUse {
  std::vector<std::vector<TensorPart>> groups;
  std::vector<const TensorInfo*> tables;
  /// [groups][experts][parts]: parts that a source may provide by WeightSource::experts() and that are in no group.
  /// Empty: none.
  std::vector<std::vector<std::vector<TensorPart>>> experts = {};
  int experts_used = 0;  ///< experts of a group that one token uses
};

/// Sizes that decide how much memory weights take, in bytes.
struct WeightSizes {
  size_t all = 0;            ///< every tensor, each counted once
  size_t largest_layer = 0;  ///< the largest layer's matrices, without experts that are read one by one
  size_t expert = 0;         ///< the largest of the experts that are read one by one; 0: there are none
  int experts_used = 0;      ///< experts of a layer that one token uses
};

/// In every mode the bytes are the file's own, row-major, or assembled from them (ScatteredRows), so results do not
/// depend on the mode. All threads may read an acquired group; the methods are for the thread that runs the pass.
class WeightSource {
 public:
  virtual ~WeightSource() = default;

  /// Fails if acquire would fail because of the mode: mapped pages cannot hold a tensor that must be assembled.
  virtual Result<void> check() const { return {}; }
  /// Returns a lock to hold for a whole pass: passes of several threads over one streamed source run one after the
  /// other.
  virtual std::unique_lock<Mutex> begin_pass() { return {}; }
  /// Returns pointers to the group's parts in the order of WeightUse; nullptr for an absent part. They are valid until
  /// release(group). Resident parts are aligned to 64 bytes, others as in the file. `next` is the group to be acquired
  /// after this one, -1 for none; at most one group is held at a time. The pool's threads may help. Errors: a failed
  /// read, naming the tensor, the file and the offset; a file that was truncated.
  virtual Result<std::span<const std::byte* const>> acquire(int group, int next, ThreadPool& pool) = 0;
  /// Pointers to a group that is to be acquired next, if it is in memory already; empty: it is not.
  virtual std::span<const std::byte* const> peek(int /*group*/) { return {}; }
  /// Ends the use of an acquired group. Call it once per acquire.
  virtual void release(int group) = 0;
  /// Copies bytes of one of WeightUse::tables, from `begin` on; in resident mode, of any tensor.
  virtual Result<void> copy(const TensorInfo& table, uint64_t begin, std::span<std::byte> out) const = 0;

  /// Provides WeightUse::experts; null if there are none.
  virtual ExpertCache* experts() const { return nullptr; }
  /// Memory that the source holds beyond its needs, as long as the budget has room.
  virtual std::vector<std::shared_ptr<SpareMemory>> spare() const { return {}; }

  /// Bytes of memory that the source itself holds now; 0 if the pages belong to the file.
  virtual size_t resident_bytes() const = 0;
  /// Bytes of all tensors of the WeightUse, each counted once.
  virtual size_t total_bytes() const = 0;
  virtual WeightsMode mode() const = 0;
  virtual int groups() const = 0;
};

/// `resident` reads everything before it returns. `streamed` keeps what `budget` has room for; null: nothing. Errors
/// name the file, the tensor and the offset.
/// Requires: every TensorInfo is one of `dir`, or nullptr; a mode that is not `automatic`; WeightUse::experts for
/// `streamed` only.
Result<std::unique_ptr<WeightSource>> open_weights(std::shared_ptr<const TensorDir> dir, WeightUse use,
                                                   WeightsMode mode, std::shared_ptr<Budget> budget = {});

/// Reads bytes of a tensor from its file. Errors name the tensor, the file and the offset.
Result<void> read_tensor(const TensorDir& dir, const TensorInfo& tensor, uint64_t begin, std::span<std::byte> out);

}  // namespace kvasir
