// What a GGUF file of a model will hold: its metadata, and for each tensor where its values come from. Writing it is
// quantize.cc's.
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

/// A tensor to write, and its rows (of a vector: its elements) in the source.
struct TensorPlan {
  TensorDecl decl;
  const Codec* from = nullptr;  ///< one element a block
  std::span<const std::byte> data;
  /// Rows come in groups of so many: row j * pair_dim / 2 + i of a group is written as row 2i + j. 0: in order.
  int pair_dim = 0;
  bool transpose = false;

  int64_t cols() const { return decl.shape.back(); }
  int64_t rows() const;
  /// Decodes the values of row r as it is written.
  void row(int64_t r, float* out) const;

 private:
  int64_t source_row(int64_t r) const;
};

struct GgufPlan {
  GgufEntries entries;
  std::vector<TensorPlan> tensors;  ///< in file order
  std::vector<std::string> notes;
  // What the spans point into.
  TensorDir source;
  std::deque<std::vector<float>> made;
};

/// Requires: options.type is one of quantize_types(). Nothing is written.
Result<GgufPlan> plan_gguf(const std::filesystem::path& model, const QuantizeOptions& options);

}  // namespace kvasir
