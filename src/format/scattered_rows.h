// Assembles tensors that a file does not store contiguously: two matrices with interleaved rows, or MXFP4 with its
// scales apart from its codes. Does not know which tensors these are.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "format/tensor_file.h"

namespace kvasir {

/// Consecutive bytes of a file.
struct FilePiece {
  int file = 0;
  uint64_t offset = 0, bytes = 0;
};

/// Returns the pieces to read for `bytes` bytes of a tensor from `begin` on. The first is the rows that contain them,
/// or only these bytes if the tensor is contiguous; the second is the rows' scales, 0 bytes if they are not apart.
/// Requires: the range lies in the tensor.
std::array<FilePiece, 2> pieces_of(const TensorInfo& tensor, uint64_t begin, uint64_t bytes);

/// Fills `out` with bytes of a scattered tensor, from `begin` on. `rows` and `scales` are the pieces that pieces_of()
/// returns for them.
void assemble(const TensorInfo& tensor, uint64_t begin, const std::byte* rows, const std::byte* scales,
              std::span<std::byte> out);

}  // namespace kvasir
