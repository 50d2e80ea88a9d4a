// Predicts the memory of a run before anything is allocated: bytes per token and per sequence, how many sequences fit,
// and the speed that memory bandwidth allows.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <kvasir/engine.h>
#include <kvasir/version.h>

namespace kvasir {

struct PlanRequest {
  std::string model = "tales";  ///< a model, or a bare config.json
  SessionOptions session;       ///< layout, ctx, KV types
  int chat = 0;                 ///< positions that a sequence uses; 0: all of ctx
  size_t ram = 0;               ///< budget of the whole run in bytes (ModelOptions::ram); 0: none
  size_t kv_ram = 0;            ///< budget of the KV cache in bytes (ModelOptions::kv_ram); 0: none
  int threads = 0;              ///< threads of the run; 0: the default count
  int prefill_chunk = 256;      ///< most tokens in one pass (EngineOptions::prefill_chunk)
  std::string dtype;            ///< a name of weight_types(), for a bare config only; empty: the config's own, else f16
};

/// A way to hold the weights within PlanRequest::ram.
struct WeightChoice {
  WeightsMode mode = WeightsMode::resident;  ///< resident or streamed; the memory of mapped weights is up to the system
  size_t weights_bytes = 0;                  ///< in memory at once
  size_t left = 0;        ///< bytes left for sequences after weights, tokenizer, activations and code; 0: does not fit
  int positions = 0;      ///< positions that fit for one sequence alone, at most the context
  int64_t users = 0;      ///< sequences of `chat` positions that fit at once
  size_t kept_bytes = 0;  ///< streamed: weights kept in what one sequence of `chat` positions leaves
  size_t disk_bytes = 0;  ///< streamed: bytes read for a token; experts as if all were equally probable
};

/// The same bytes, with the weights held as the run chooses, in another KV type.
struct KvChoice {
  std::string kv_type;
  size_t bytes_per_token = 0;
  int positions = 0;  ///< as in WeightChoice
  int64_t users = 0;
};

struct PlanReport {
  std::string model, family, layout, kv_type_k, kv_type_v;
  int layers = 0, heads = 0, kv_heads = 0, head_dim = 0, ctx = 0, chat = 0;
  size_t kv_bytes_per_token = 0;      ///< K and V in all layers
  size_t kv_bytes = 0;                ///< held by one sequence of `chat` positions
  size_t kv_peak_bytes = 0;           ///< largest until then; old and new memory count together while growing
  size_t weights_bytes = 0;           ///< all weights
  int experts = 0, experts_used = 0;  ///< experts in a layer, and used per token; 0: a dense model
  size_t active_weights_bytes = 0;    ///< weights that one token reads
  size_t read_bytes_per_token = 0;    ///< weights and KV rows that one decode step reads
  int64_t users_that_fit = -1;        ///< sequences that fit at once in ram or kv_ram; -1: neither was given
  size_t activation_bytes = 0;        ///< scratch memory of passes of prefill_chunk tokens
  int prefill_chunk = 0;              ///< tokens a pass: as requested, or as many as the budget allows
                                      // Set with PlanRequest::ram only:
  size_t tokenizer_bytes = 0, process_bytes = 0;  ///< process: code and small objects
  std::optional<WeightsMode> weights_mode;        ///< the mode that a run chooses; none: nothing fits
  std::vector<WeightChoice> choices;
  std::vector<KvChoice> kv_types;
  std::vector<std::string> files;  ///< paths of the weights; empty for a bare config
  // Set always:
  std::vector<std::string> explanation;  ///< how the KV bytes were multiplied, one step a line
  std::vector<Ignored> ignored;          ///< parts of the model's files that Kvasir does not use
};

/// Predicts a run. Errors: those of Model::open(); bad_argument, an option out of range or a context above the model's
/// limit.
KVASIR_API Result<PlanReport> plan(const PlanRequest& request);

/// Rates of this machine per second.
struct Rates {
  double memory = 0;           ///< bytes read from memory, over a range larger than the CPU's caches
  double flops = 0;            ///< f32 fused multiply-adds in registers, two operations each
  double int8_ops = 0;         ///< products of bytes summed in 32 bits, two operations each
  std::optional<double> disk;  ///< bytes read past the page cache; none: no file, or the file system cannot
};

/// Measures the rates with `threads` threads (0: the default count), in about half a second. The disk is measured by
/// reading `file`, if one is given. Errors: bad_argument, a thread count out of range; no_room.
KVASIR_API Result<Rates> measure_rates(int threads, const std::string& file = {});
/// Upper bound of decode speed that memory reads allow, in tokens per second, for one sequence of `chat` positions with
/// resident weights.
KVASIR_API double decode_limit(const PlanReport& report, const Rates& rates);
/// The same for a way to hold the weights: streamed weights are bound by the slower of memory and disk. None: the
/// weights are streamed and Rates::disk is empty.
KVASIR_API std::optional<double> decode_limit(const WeightChoice& choice, const PlanReport& report, const Rates& rates);

}  // namespace kvasir
