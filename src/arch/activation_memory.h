// Memory that a pass takes, predicted before any weights are loaded. Weights and caches are counted elsewhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <kvasir/result.h>

#include "arch/family.h"

namespace kvasir {

/// The memory that passes of one model compute in. The family's own code counts it: it runs once over a pass of no
/// tokens, with matrices that have shapes but no data, in a workspace that records each take().
class Footprint {
 public:
  /// Errors: this CPU is not supported.
  static Result<Footprint> of(const Family& family, const ModelConfig& config);

  /// Floats of workspace for a pass of `tokens` tokens. Exact, except sinks (sink_angle_floats) and split histories
  /// (attend_state_floats), which the caller adds.
  size_t workspace_floats(int tokens) const;
  /// Floats of one thread's scratch: a panel of weights or a tile of attention, whichever is larger.
  int64_t scratch_floats() const { return scratch_floats_; }
  /// Bytes of everything that a pass of at most `tokens` tokens computes in, except its logits.
  size_t activation_bytes(int tokens, int threads) const;

 private:
  using Columns = std::vector<int64_t>;  // of each take(); every take has one row per token
  void add_phase(Columns columns);

  Columns whole_pass_;                          // the residual stream and the RoPE tables
  std::vector<Columns> phases_;                 // the embedding, each kind of layer, the head; one is live at a time
  int64_t widest_ = 0;                          // largest number of inputs of any matrix
  int64_t experts_used_ = 0, expert_cols_ = 0;  // experts per token; largest number of inputs of an expert's matrix
  int64_t act_cols_ = 0;                        // inputs to integer weights per token, summed over its experts
  int64_t scratch_floats_ = 0;
};

/// Bytes that each sequence adds to activation_bytes(): three rows of logits (its own, and two that the sampler edits
/// or sorts in), and the states of a history that is split over threads, of which one token sees `seen` positions.
size_t sequence_bytes(const ModelConfig& config, int seen);

}  // namespace kvasir
