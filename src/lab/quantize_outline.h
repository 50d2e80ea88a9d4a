// The outline of a GGUF file of a model: its metadata, and the source of each tensor's values. quantize.cc writes it.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <vector>

#include <kvasir/result.h>

#include "format/gguf_writer.h"
#include "format/tensor_file.h"
#include "lab/quantize.h"

namespace kvasir {

/// A tensor to write, and the location of its rows (for a vector, its elements) in the source.
struct TensorOutline {
  TensorDecl decl;
  const Codec* from = nullptr;  ///< of the source; one element per block
  std::span<const std::byte> data;
  /// Rows per group: row j * pair_dim / 2 + i of a group is written as row 2i + j. 0: rows stay in order.
  int pair_dim = 0;
  bool transpose = false;

  int64_t cols() const { return decl.shape.back(); }
  int64_t rows() const;
  /// Decodes the values of row r of the tensor to write.
  void row(int64_t r, float* out) const;

 private:
  int64_t source_row(int64_t r) const;
};

struct GgufOutline {
  GgufEntries entries;
  std::vector<TensorOutline> tensors;  ///< in file order
  std::vector<std::string> notes;
  // Owners of the memory that the tensors' spans point to.
  TensorDir source;
  std::deque<std::vector<float>> made;
};

/// Errors: a name that does not end in .gguf, an existing file without `force`, the model itself, something that is no
/// file.
Result<void> check_gguf_output(const std::filesystem::path& out, const std::filesystem::path& model, bool force);

/// Outlines the file; writes nothing. Errors: those of quantize() that concern the types, the model and the tokenizer.
Result<GgufOutline> outline_gguf(const std::filesystem::path& model, const QuantizeOptions& options);

}  // namespace kvasir
