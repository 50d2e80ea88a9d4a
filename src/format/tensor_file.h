// Named tensors inside memory-mapped files, and their places. The readers of formats fill a TensorDir; no format is
// known here.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dtype/codec.h"
#include "format/mapped_file.h"

namespace kvasir {

/// The places of the rows of a tensor that is not contiguous in its file. It is assembled when it is read
/// (format/scattered_rows.h). The first row is at TensorInfo::offset.
struct ScatteredRows {
  uint64_t bytes = 0;  ///< of an assembled row
  uint64_t step = 0;   ///< bytes in the file from one row to the next
  /// MXFP4 stored as two planes. `step` is then that of the codes: 16 bytes per block, neighbours in one byte. These
  /// fields are those of the scales: one byte per block. -1: a row is stored as it is.
  int scales_file = -1;
  uint64_t scales = 0, scales_step = 0;
};

/// One tensor as the file declares it; the reader has checked that it lies inside the file.
struct TensorInfo {
  std::string name;
  const Codec* codec = nullptr;  ///< nullptr if Kvasir does not compute with this dtype
  std::string dtype;             ///< the file's own name, "BF16"; "type 77" for a number of GGUF without a known name
  std::vector<int64_t> shape;    ///< slowest dimension first; no dimension is negative, the product fits int64_t
  uint64_t offset = 0;           ///< bytes from the start of the file; only the file decides its alignment
  uint64_t bytes = 0;
  int file = 0;  ///< index into TensorDir::files

  // How the file stores it, if not as Hugging Face does.
  std::string stored_name = {};  ///< empty: `name`
  /// Rows come in groups of `pair_dim`: row j * pair_dim / 2 + i of a group is stored as row 2i + j. 0: rows are in
  /// order.
  int pair_dim = 0;
  bool transposed = false;  ///< stored as the transpose; `shape` is the stored one
  /// Written by a converter that follows GGUF's rules: gains that Hugging Face stores minus one are stored whole, and
  /// rows of q, k and v that it stores head by head are in order.
  bool converted = false;
  std::optional<ScatteredRows> scattered = {};  ///< `bytes` is then that of all rows, assembled

  /// The name by which a user finds it in the file.
  const std::string& name_in_file() const { return stored_name.empty() ? name : stored_name; }
};

/// A tensor to write.
struct TensorDecl {
  std::string name;
  const Codec* codec;          ///< of the type to store
  std::vector<int64_t> shape;  ///< slowest dimension first
};

/// A model's tensors, over one file or several shards.
struct TensorDir {
  std::vector<std::shared_ptr<MappedFile>> files;
  std::vector<TensorInfo> tensors;  ///< sorted by name, no name twice

  /// Returns nullptr if there is no such tensor.
  const TensorInfo* find(std::string_view name) const;
  /// The tensor's bytes in the mapping, possibly unaligned. Requires: it is not scattered.
  std::span<const std::byte> data(const TensorInfo& tensor) const {
    assert(!tensor.scattered);
    return files[static_cast<size_t>(tensor.file)]->bytes().subspan(tensor.offset, tensor.bytes);
  }
};

/// Sorts by name; fails if a name is there twice.
Result<void> sort_tensors(std::vector<TensorInfo>& tensors, const std::string& where);

}  // namespace kvasir
