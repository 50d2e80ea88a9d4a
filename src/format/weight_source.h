// Where a model's weights are while it runs. Tensors come in groups (one a layer, say) that are acquired, used and
// released one after the other, so that a source may hold only a few of them; tables are looked up by row and never
// acquired. Knows no model: the caller makes the groups.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>  // unique_lock
#include <span>
#include <string_view>
#include <vector>

#include <kvasir/catalog.h>
#include <kvasir/result.h>

#include "base/mutex.h"
#include "base/thread_pool.h"
#include "format/tensor_file.h"

namespace kvasir {

/// Some consecutive bytes of a tensor. Null: one that this model does not have.
struct TensorPart {
  const TensorInfo* tensor = nullptr;
  uint64_t begin = 0, bytes = 0;

  static TensorPart all_of(const TensorInfo* tensor) { return {tensor, 0, tensor == nullptr ? 0 : tensor->bytes}; }
};

/// What a source is opened for.
struct WeightUse {
  std::vector<std::vector<TensorPart>> groups;
  std::vector<const TensorInfo*> tables;
};

/// The bytes are the file's own, row-major, whatever the mode, or put together of them (ScatteredRows); results cannot
/// depend on the mode. What acquire gave may be read by all threads; the rest is for the one that runs the pass.
class WeightSource {
 public:
  virtual ~WeightSource() = default;

  /// Errors: this source cannot give all that it was opened for, as mapped pages cannot hold a tensor that has to be
  /// put together; acquire would fail.
  virtual Result<void> check() const { return {}; }
  /// Held for a whole pass: passes of several threads over one streamed source run one after the other.
  virtual std::unique_lock<Mutex> begin_pass() { return {}; }
  /// Pointers to the group's parts in the order of WeightUse; nullptr where that held none. They are good until
  /// release(group). Resident ones are aligned to 64 bytes, the others as the file has them. `next` is the group that
  /// will be acquired after this one, -1 for none; at most one group is held at a time. The pool's threads may help.
  /// Errors: what could not be read, with the tensor, the file and the offset; a file that was cut.
  virtual Result<std::span<const std::byte* const>> acquire(int group, int next, ThreadPool& pool) = 0;
  /// Ends the use of what acquire(group) gave. Once per acquire.
  virtual void release(int group) = 0;
  /// Copies bytes of one of WeightUse::tables, from `begin` on; of any tensor where all are resident.
  virtual Result<void> copy(const TensorInfo& table, uint64_t begin, std::span<std::byte> out) const = 0;

  /// Bytes of memory held by the source itself now; 0 when the pages belong to the file.
  virtual size_t resident_bytes() const = 0;
  /// Bytes of all parts and tables, what is in several counted once.
  virtual size_t total_bytes() const = 0;
  virtual WeightsMode mode() const = 0;
  virtual int groups() const = 0;
};

/// `resident` reads everything before it returns. Errors name the file, the tensor and the offset.
/// Requires: every TensorInfo is one of `dir`, or nullptr; a mode that is not `automatic`.
Result<std::unique_ptr<WeightSource>> open_weights(std::shared_ptr<const TensorDir> dir, WeightUse use,
                                                   WeightsMode mode);

/// Reads bytes of a tensor from its file. Errors name the tensor, the file and the offset.
Result<void> read_tensor(const TensorDir& dir, const TensorInfo& tensor, uint64_t begin, std::span<std::byte> out);

}  // namespace kvasir
