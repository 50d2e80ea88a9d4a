// One forward pass over a batch: the tokens of some sequences, their positions, their caches and the activations.
// What a family's layer sees; the blocks it is written with are in blocks.h.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "arch/config.h"
#include "arch/workspace.h"
#include "cache/layout.h"
#include "math/compute.h"

namespace kvasir {

/// Some consecutive tokens of one sequence, at positions first, first + 1, ...
struct BatchItem {
  Layout* cache = nullptr;
  int first = 0;
  std::span<const int> tokens;
  int wanted_from = 0;      ///< logits are wanted of tokens[wanted_from..]
  float* hidden = nullptr;  ///< receives the final-norm states of tokens[hidden_from..]; null: not wanted
  int hidden_from = 0;
};

/// Angles per position of one of a model's kinds of rotation; `longer`: of sessions past its original context.
struct RopeFrequencies {
  std::vector<double> usual, longer;

  explicit RopeFrequencies(const RopeConfig& rope) : usual(rope.frequencies()), longer(rope.frequencies(true)) {}
};

/// Floats of workspace that the angles of the sinks of a pass take.
size_t sink_angle_floats(const ModelConfig& config, std::span<const BatchItem> items);

/// Sees every named intermediate value: layer (-1 outside the layers), name, rows. For tests and dumps.
using Trace = std::function<void(int layer, std::string_view name, const Rows& rows)>;

class Pass {
 public:
  /// `ropes`: of each of the config's kinds.
  Pass(const ModelConfig& config, std::span<const RopeFrequencies> ropes, Compute& compute, Workspace& workspace,
       std::span<const BatchItem> items, const Trace* trace);

  const ModelConfig& config() const { return config_; }
  Compute& compute() const { return compute_; }
  const Kernels& kernels() const { return compute_.kernels(); }
  std::span<const BatchItem> items() const { return items_; }

  /// Tokens in the pass, over all items.
  int tokens() const { return static_cast<int>(ids_.size()); }
  int id(int t) const { return ids_[static_cast<size_t>(t)]; }
  int position(int t) const { return positions_[static_cast<size_t>(t)]; }
  /// The item that row t belongs to.
  const BatchItem& item_of(int t) const { return items_[static_cast<size_t>(owners_[static_cast<size_t>(t)])]; }
  /// Row of an item's first token.
  int first_row(size_t item) const { return first_rows_[item]; }

  /// Cosines and sines of one kind of rotation, a row for each token (or each of its sinks).
  struct Angles {
    Rows cos, sin;
  };
  /// Of the tokens, for each kind of the config.
  const std::vector<Angles>& angles() const { return angles_; }
  /// Rotates heads of row t by its position, or those of sink i of its sequence, by its place right before what the
  /// window shows that row. The layer must have RoPE.
  void rotate(int layer, int t, float* heads, int count) const { rotate(layer, heads, count, angles_, t); }
  void rotate_sink(int layer, int t, int i, float* heads, int count) const {
    rotate(layer, heads, count, sink_angles_, t * most_sinks_ + i);
  }

  /// [tokens()][cols], good until the layer ends.
  Rows take(int64_t cols) { return workspace_.take(tokens(), cols); }
  Workspace& workspace() { return workspace_; }
  void trace(int layer, std::string_view name, const Rows& rows) const {
    if (trace_ != nullptr && *trace_) (*trace_)(layer, name, rows);
  }

  Rows x;  ///< the residual stream, [tokens()][hidden]

 private:
  void make_rope_tables(std::span<const RopeFrequencies> ropes);
  void make_sink_tables(std::span<const RopeFrequencies> ropes);
  void set_angles(int t, size_t kind, const RopeFrequencies& rope, double position, const Angles& angles,
                  int row) const;
  void rotate(int layer, float* heads, int count, const std::vector<Angles>& angles, int row) const;

  const ModelConfig& config_;
  Compute& compute_;
  Workspace& workspace_;
  std::span<const BatchItem> items_;
  const Trace* trace_;
  std::vector<int> ids_, positions_, owners_, first_rows_;
  int most_sinks_;                            // of a sequence
  std::vector<Angles> angles_, sink_angles_;  // of each kind
};

}  // namespace kvasir
