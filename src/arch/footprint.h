// How much memory a pass takes, known before there are weights. Weights and caches are elsewhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <kvasir/result.h>

#include "arch/family.h"

namespace kvasir {

/// The memory that passes of one model compute in. The family's own code counts it: it runs once over a pass of no
/// tokens, with matrices that have shapes and no data, in a workspace that lists what is taken.
class Footprint {
 public:
  /// Errors: this CPU cannot compute.
  static Result<Footprint> of(const Family& family, const ModelConfig& config);

  /// Floats of the workspace for a pass of `tokens`, exact but for sinks (sink_angle_floats) and split histories
  /// (attend_state_floats), which come on top.
  size_t workspace_floats(int tokens) const;
  /// Floats of a thread's scratch: a panel of weights, or a tile of attention.
  int64_t scratch_floats() const { return scratch_floats_; }
  /// Bytes of all that a pass of at most `tokens` computes in, but for its logits.
  size_t activation_bytes(int tokens, int threads) const;

 private:
  using Columns = std::vector<int64_t>;  // of each take, one row a token
  void add_phase(Columns columns);

  Columns whole_pass_;                          // the residual stream and the RoPE tables
  std::vector<Columns> phases_;                 // the embedding, the kinds of layers, the head: one at a time
  int64_t widest_ = 0;                          // the most inputs of a matrix
  int64_t experts_used_ = 0, expert_cols_ = 0;  // of a token; the most inputs of an expert's matrix
  int64_t act_cols_ = 0;                        // inputs of integer weights of one token, over the experts that it uses
  int64_t scratch_floats_ = 0;
};

/// Bytes that each sequence adds to activation_bytes(): three rows of logits, its own and two that the sampler edits or
/// sorts in, and the states of a history that is split over threads, of which a token sees `seen` positions.
size_t sequence_bytes(const ModelConfig& config, int seen);

}  // namespace kvasir
