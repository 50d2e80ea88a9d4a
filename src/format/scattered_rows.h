// Tensors that are put together when they are read, since their file keeps them otherwise: rows of two matrices by
// turns, MXFP4's scales apart from its codes. Which tensors these are is not known here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "format/tensor_file.h"

namespace kvasir {

/// Some consecutive bytes of a file.
struct FilePiece {
  int file = 0;
  uint64_t offset = 0, bytes = 0;
};

/// What is read for `bytes` bytes of a tensor from `begin` on: the rows that hold them, or these bytes alone where the
/// tensor lies in one piece; then the rows' scales, 0 bytes where they are not apart.
/// Requires: the range lies in the tensor.
std::array<FilePiece, 2> pieces_of(const TensorInfo& tensor, uint64_t begin, uint64_t bytes);

/// Puts bytes of a scattered tensor together, from `begin` on. `rows` and `scales` are what pieces_of() names for them.
void assemble(const TensorInfo& tensor, uint64_t begin, const std::byte* rows, const std::byte* scales,
              std::span<std::byte> out);

}  // namespace kvasir
