// Splits and joins stored tensors so that each one is what the family's table names. One stored tensor may contain
// several of the table's (a layer's experts, fused matrices); one table tensor may be stored as two. Every part is
// whole rows, so a part is a tensor of its own at its place in the file.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include <kvasir/result.h>

#include "format/tensor_file.h"

namespace kvasir {

/// The stored tensor `name` (without its layer prefix and without ".weight" or ".bias") contains `parts`: equal numbers
/// of rows, one after the other. If a part's name has a '*', the slowest dimension is the expert, and '*' its number.
struct TensorSplit {
  std::string_view name;
  std::span<const std::string_view> parts = {};
  bool by_turns = false;  ///< the parts' rows alternate: part 0, part 1, ..., part 0, ...
  /// MXFP4 stored as two tensors: `name` is U8 [..., blocks, 16], each byte two neighbouring values; this one is U8
  /// [..., blocks].
  std::string_view scales = {};
  std::string_view ending = ".weight";  ///< appended to the parts' names if the stored name has no ending
  std::string_view refused = {};        ///< why Kvasir does not read such a tensor; `parts` is empty then
};

/// Returns the parts of a tensor. `before` and `after` go around their names. Errors: the tensor does not divide
/// evenly.
Result<std::vector<TensorInfo>> split_tensor(const TensorInfo& tensor, const TensorSplit& split,
                                             std::string_view before, std::string_view after, const std::string& where);
/// Replaces each tensor of `dir` that `splits` names by its parts. Errors: a tensor that does not divide evenly or is
/// refused, a tensor without its scales or scales without their tensor, shapes that do not fit each other.
Result<void> split_tensors(std::span<const TensorSplit> splits, TensorDir* dir, const std::string& where);

}  // namespace kvasir
