// One forward pass over a batch: the tokens of its sequences, their positions, their caches and the activations. A
// family's layer works on it, with the operations of layer_ops.h.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "arch/config.h"
#include "arch/workspace.h"
#include "cache/layout.h"
#include "format/expert_cache.h"
#include "math/compute.h"

namespace kvasir {

/// Consecutive tokens of one sequence, at positions first, first + 1, ...
struct BatchItem {
  Layout* cache = nullptr;
  int first = 0;
  std::span<const int> tokens;
  int wanted_from = 0;      ///< return logits for tokens[wanted_from..]
  float* hidden = nullptr;  ///< receives the states of tokens[hidden_from..] after the final norm; may be null
  int hidden_from = 0;
};

/// Angles per position of one kind of RoPE. `longer` is for sessions longer than the original context.
struct RopeFrequencies {
  std::vector<double> usual, longer;

  explicit RopeFrequencies(const RopeConfig& rope) : usual(rope.frequencies()), longer(rope.frequencies(true)) {}
};

/// Floats of workspace that the sink angles of a pass take.
size_t sink_angle_floats(const ModelConfig& config, std::span<const BatchItem> items);

/// Receives every named intermediate value: layer (-1 outside the layers), name, rows. For tests and dumps.
using Trace = std::function<void(int layer, std::string_view name, const Rows& rows)>;

class Pass {
 public:
  /// `ropes` has one entry per kind of the config.
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
  /// The item that contains row t.
  const BatchItem& item_of(int t) const { return items_[static_cast<size_t>(owners_[static_cast<size_t>(t)])]; }
  /// Row of the item's first token.
  int first_row(size_t item) const { return first_rows_[item]; }

  /// Cosines and sines of one kind of RoPE; one row per token, or one per token and sink.
  struct Angles {
    Rows cos, sin;
  };
  /// Angles of the tokens, one entry per kind of the config.
  const std::vector<Angles>& angles() const { return angles_; }
  /// Rotates `count` heads in place. rotate() uses the position of row t. rotate_sink() is for sink i as row t sees it:
  /// sinks are rotated to the positions just before the row's window. Requires: the layer has RoPE.
  void rotate(int layer, int t, float* heads, int count) const { rotate(layer, heads, count, angles_, t); }
  void rotate_sink(int layer, int t, int i, float* heads, int count) const {
    rotate(layer, heads, count, sink_angles_, t * most_sinks_ + i);
  }

  /// Takes rows [tokens(), cols], valid until the layer ends.
  Rows take(int64_t cols) { return workspace_.take(tokens(), cols); }
  Workspace& workspace() { return workspace_; }
  void trace(int layer, std::string_view name, const Rows& rows) const {
    if (trace_ != nullptr && *trace_) (*trace_)(layer, name, rows);
  }

  Rows x;  ///< the residual stream, [tokens(), hidden]
  /// The next layer's matrices, for a guess of its experts; `data` is empty if they are not in memory.
  struct Ahead {
    std::span<const Matrix> matrices = {};
    std::span<const std::byte* const> data = {};
  } ahead;
  ExpertCache* experts = nullptr;    ///< provides the experts; null: they are in the layer's weights
  std::optional<Error> failed = {};  ///< set by a layer that could not read its experts; ends the pass

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
  int most_sinks_;                            // largest number of sinks of a sequence
  std::vector<Angles> angles_, sink_angles_;  // one entry per kind of RoPE
};

}  // namespace kvasir
