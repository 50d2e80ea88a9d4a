// Tensors that files keep as one and Kvasir's tables name one by one: the experts of a layer, matrices that are fused;
// and those that files keep as two. Every part is whole rows, so that a part is a tensor of its own at its place in the
// file.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include <kvasir/result.h>

#include "format/tensor_file.h"

namespace kvasir {

/// `name`, without ".weight" or ".bias" and without what stands before it, holds `parts`: equal numbers of rows, one
/// after the other. Where a part's name has a '*', the slowest dimension is experts, and '*' the number of one.
struct TensorSplit {
  std::string_view name;
  std::span<const std::string_view> parts = {};
  bool by_turns = false;  ///< the parts' rows take turns
  /// MXFP4 in two tensors: `name` is U8 [...][blocks][16], bytes of two neighbours each, this one U8 [...][blocks].
  std::string_view scales = {};
  std::string_view ending = ".weight";  ///< of the parts of a tensor whose name has none
  std::string_view refused = {};        ///< why Kvasir does not read such a tensor, which has no parts then
};

/// The parts of a tensor; `before` and `after` stand around their names. Errors: it does not divide evenly.
Result<std::vector<TensorInfo>> split_tensor(const TensorInfo& tensor, const TensorSplit& split,
                                             std::string_view before, std::string_view after, const std::string& where);
/// Replaces the tensors of `dir` that one of `splits` names by their parts. Errors: one that does not divide evenly or
/// is refused; a tensor without its scales, or scales without theirs; shapes that do not fit each other.
Result<void> split_tensors(std::span<const TensorSplit> splits, TensorDir* dir, const std::string& where);

}  // namespace kvasir
