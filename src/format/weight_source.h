// Where a model's weights are while it runs. Tensors come in groups (one a layer, say) that are acquired, used and
// released one after the other, so that a source may hold only a few of them. Knows no model: the caller makes the
// groups.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include <kvasir/result.h>

#include "format/tensor_file.h"

namespace kvasir {

enum class WeightMode {
  resident,  ///< read once into huge pages of our own
  mapped,    ///< pages of the file itself, which the system may drop and read again
};

/// The bytes are the file's own, row-major, whatever the mode; results cannot depend on it. acquire and release are for
/// one thread (the one that runs the forward pass); what acquire gave may be read by all.
class WeightSource {
 public:
  virtual ~WeightSource() = default;

  /// Pointers to the group's tensors in the order given to open_weights; nullptr where that held nullptr. They are good
  /// until release(group). Mapped pointers have the file's own alignment, the others 64 bytes.
  virtual Result<std::span<const std::byte* const>> acquire(int group) = 0;
  /// Ends the use of what acquire(group) gave. Once per acquire.
  virtual void release(int group) = 0;

  /// Bytes of memory held by the source itself now; 0 when the pages belong to the file.
  virtual size_t resident_bytes() const = 0;
  /// Bytes of all tensors, one in several groups counted once.
  virtual size_t total_bytes() const = 0;
  virtual WeightMode mode() const = 0;
  virtual int groups() const = 0;
};

/// `resident` reads everything before it returns. Errors name the file, the tensor and the offset.
/// Requires: every TensorInfo is one of `dir`, or nullptr (a tensor that this model does not have).
Result<std::unique_ptr<WeightSource>> open_weights(std::shared_ptr<const TensorDir> dir,
                                                   std::vector<std::vector<const TensorInfo*>> groups, WeightMode mode);

}  // namespace kvasir
