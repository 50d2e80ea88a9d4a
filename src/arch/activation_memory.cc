// The dry pass, in the same order as network.cc's pass, and sums over what it took.
#include "arch/activation_memory.h"

#include <algorithm>
#include <utility>

#include "arch/forward_pass.h"
#include "math/compute.h"
#include "math/tile.h"

namespace kvasir {
namespace {

/// The tensors of one group as shapes: matrices without data, and no vectors.
struct Shapes {
  std::vector<Matrix> matrices;
  std::vector<std::vector<float>> vectors;
  int64_t widest = 0;  // largest number of inputs of a matrix

  explicit Shapes(const std::vector<TensorSpec>& specs) : matrices(specs.size()), vectors(specs.size()) {
    for (size_t i = 0; i < specs.size(); ++i) {
      const TensorSpec& spec = specs[i];
      if (!spec.present || spec.shape.size() != 2) continue;
      const int64_t rows = spec.conv1d ? spec.shape[1] : spec.shape[0];
      const int64_t cols = spec.conv1d ? spec.shape[0] : spec.shape[1];
      matrices[i] = {&codec_f32(), nullptr, rows, cols, spec.conv1d, {}};
      widest = std::max(widest, cols);
    }
  }
  Weights weights() const { return {matrices, vectors}; }
};

size_t floats_of(std::span<const int64_t> columns, int tokens) {
  size_t floats = 0;
  for (const int64_t cols : columns) floats += Workspace::floats_for(tokens, cols);
  return floats;
}

}  // namespace

Result<Footprint> Footprint::of(const Family& family, const ModelConfig& c) {
  KVASIR_TRY(const auto compute, Compute::create(1));
  Workspace workspace;
  KVASIR_CHECK(workspace.reserve(1));  // take() needs a buffer to point into, even for no tokens
  Footprint f;
  Columns columns;
  workspace.list_columns(&columns);
  const std::vector<RopeFrequencies> ropes(c.ropes.begin(), c.ropes.end());
  Pass pass(c, ropes, *compute, workspace, {}, nullptr);
  f.whole_pass_ = std::exchange(columns, {});

  const TensorTable table = family.tensor_table(c);
  const Shapes embed(table.embed), head(table.head);
  for (const Matrix& rows : embed.matrices) pass.take(rows.cols);
  family.embed(pass, embed.weights());
  f.add_phase(std::exchange(columns, {}));
  for (int l = 0; l < c.layers; ++l) {
    const Shapes layer(table.layers[static_cast<size_t>(l)]);
    family.layer(pass, l, layer.weights());
    f.add_phase(std::exchange(columns, {}));
    f.widest_ = std::max(f.widest_, layer.widest);
  }
  const Rows normed = family.final_norm(pass, pass.x, head.weights());
  pass.take(normed.cols);  // copy of the rows whose logits are wanted
  f.add_phase(std::exchange(columns, {}));
  f.widest_ = std::max(f.widest_, head.widest);

  f.experts_used_ = c.experts.used;
  f.expert_cols_ = std::max(c.hidden, c.experts.ffn);
  f.act_cols_ = std::max(f.widest_, f.experts_used_ * f.expert_cols_);
  const int64_t first_tile = 2 * int64_t{kTilePositions} * c.head_dim;
  f.scratch_floats_ =
      std::max(f.widest_ * kPanelRows, first_tile + attend_scratch_floats(c.head_dim, c.group(), kMaxAttendTokens));
  return f;
}

void Footprint::add_phase(Columns columns) {
  if (std::find(phases_.begin(), phases_.end(), columns) == phases_.end()) phases_.push_back(std::move(columns));
}

size_t Footprint::workspace_floats(int tokens) const {
  size_t most = 0;
  for (const Columns& phase : phases_) most = std::max(most, floats_of(phase, tokens));
  return floats_of(whole_pass_, tokens) + most;
}

size_t Footprint::activation_bytes(int tokens, int threads) const {
  const auto acts = static_cast<size_t>(int64_t{tokens} * act_cols_ / kActElems) * sizeof(ActBlock);
  const auto few = static_cast<size_t>(std::min<int64_t>(int64_t{tokens} * experts_used_, kArrangedRows));
  const size_t arranged = few * static_cast<size_t>(arranged_bytes(expert_cols_)) * kArrangements;
  return (workspace_floats(tokens) + static_cast<size_t>(scratch_floats_ * threads)) * sizeof(float) + acts + arranged;
}

size_t sequence_bytes(const ModelConfig& c, int seen) {
  const int64_t tiles = int64_t{seen} / kTilePositions + 2;  // both ends of a window may lie within a tile
  return (size_t{3} * static_cast<size_t>(c.vocab) +
          Workspace::floats_for(static_cast<int>((tiles + c.null_scores) * c.heads), c.head_dim + 2)) *
         sizeof(float);
}

}  // namespace kvasir
