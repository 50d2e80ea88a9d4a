// What a run will take, known before anything is allocated: bytes per token, per sequence, how many sequences fit, and
// the speed that memory bandwidth allows.
#pragma once

#include <string>
#include <vector>

#include <kvasir/engine.h>

namespace kvasir {

struct PlanRequest {
  std::string model = "tales";  ///< a model, or a bare config.json
  SessionOptions session;       ///< layout, ctx, KV types
  int chat = 0;                 ///< positions that a sequence uses; 0: all of ctx
  size_t ram = 0;               ///< bytes for the whole run, 0: none given
  size_t kv_ram = 0;            ///< bytes for the cache alone, 0: none given
  std::string dtype;            ///< weight type for a bare config; empty: the config's own, else f16
};

struct PlanReport {
  std::string model, family, layout, kv_type_k, kv_type_v;
  int layers = 0, heads = 0, kv_heads = 0, head_dim = 0, ctx = 0, chat = 0;
  size_t kv_bytes_per_token = 0;  ///< in all layers, K and V
  size_t kv_bytes = 0;            ///< held by one sequence of `chat` positions
  size_t kv_peak_bytes = 0;       ///< the most on the way there, old + new while growing
  size_t weights_bytes = 0;
  size_t read_bytes_per_token = 0;       ///< weights that one decode step reads, its KV rows included
  int64_t users_that_fit = -1;           ///< sequences at once in ram or kv_ram; -1: neither was given
  std::vector<std::string> explanation;  ///< the multiplications, one a line
};

/// What a run takes besides weights and KV: activations, scratch, tokenizer, code. A promise, not a measurement.
inline constexpr size_t kRunOverheadBytes = size_t{64} << 20;

/// Errors: an architecture that is not supported (named), a bad config, a context above the model's limit.
Result<PlanReport> plan(const PlanRequest& request);

/// Bytes per second that this machine reads from memory with so many threads, measured now (about 0.2 s).
Result<double> measure_read_bandwidth(int threads);

}  // namespace kvasir
