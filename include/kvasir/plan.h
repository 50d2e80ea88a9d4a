// What a run will take, known before anything is allocated: bytes per token, per sequence, how many sequences fit, and
// the speed that memory bandwidth allows.
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
  size_t ram = 0;               ///< bytes for the whole run, 0: none given
  size_t kv_ram = 0;            ///< bytes for the cache alone, 0: none given
  int threads = 0;              ///< that will run it; 0: the default
  int prefill_chunk = 256;      ///< tokens that it will run in one pass at most
  std::string dtype;            ///< one of weight_types() for a bare config; empty: the config's own, else f16
};

/// A way to hold the weights within PlanRequest::ram.
struct WeightChoice {
  WeightsMode mode = WeightsMode::resident;  ///< or streamed; mapped pages come and go as the system likes
  size_t weights_bytes = 0;                  ///< in memory at once
  size_t left = 0;        ///< for sequences, after weights, tokenizer, activations and code; 0: it does not fit
  int positions = 0;      ///< that one sequence may have alone, at most the context
  int64_t users = 0;      ///< sequences of `chat` positions at once
  size_t disk_bytes = 0;  ///< read again for every pass
};

/// What is left by the chosen way, as positions of another KV type.
struct KvChoice {
  std::string kv_type;
  size_t bytes_per_token = 0;
  int positions = 0;
  int64_t users = 0;
};

struct PlanReport {
  std::string model, family, layout, kv_type_k, kv_type_v;
  int layers = 0, heads = 0, kv_heads = 0, head_dim = 0, ctx = 0, chat = 0;
  size_t kv_bytes_per_token = 0;  ///< in all layers, K and V
  size_t kv_bytes = 0;            ///< held by one sequence of `chat` positions
  size_t kv_peak_bytes = 0;       ///< the most on the way there, old + new while growing
  size_t weights_bytes = 0;
  int experts = 0, experts_used = 0;  ///< in a layer, and those of them that a token uses; 0: a dense model
  size_t active_weights_bytes = 0;    ///< weights that one token reads
  size_t read_bytes_per_token = 0;    ///< weights that one decode step reads, its KV rows included
  int64_t users_that_fit = -1;        ///< sequences at once in ram or kv_ram; -1: neither was given
  size_t activation_bytes = 0;        ///< of passes of prefill_chunk tokens
  int prefill_chunk = 0;              ///< tokens a pass, the asked one or as many as the budget allows
  // With PlanRequest::ram:
  size_t tokenizer_bytes = 0, process_bytes = 0;
  std::optional<WeightsMode> weights_mode;  ///< what a run chooses; none: nothing fits
  std::vector<WeightChoice> choices;
  std::vector<KvChoice> kv_types;
  std::vector<std::string> files;        ///< the weights', empty for a bare config
  std::vector<std::string> explanation;  ///< the multiplications, one a line
  std::vector<Ignored> ignored;          ///< what the model's files hold and Kvasir does not use
};

/// Errors: an architecture that is not supported (named), a bad config, a context above the model's limit.
KVASIR_API Result<PlanReport> plan(const PlanRequest& request);

/// Rates of this machine per second.
struct Rates {
  double memory = 0;           ///< bytes read from memory, from more than any cache holds
  double flops = 0;            ///< f32 fused multiply-adds in registers, two operations each
  double int8_ops = 0;         ///< products of bytes summed in 32 bits, two operations each
  std::optional<double> disk;  ///< bytes read past the page cache; none: no file, or a file system that cannot
};

/// Measured now with `threads` threads (0: the default) in about half a second, the disk with `file`, where one is
/// given. Errors: a thread count out of range, no memory.
KVASIR_API Result<Rates> measure_rates(int threads, const std::string& file = {});
/// Tokens a second that memory allows one sequence of `chat` positions, weights resident.
KVASIR_API double decode_limit(const PlanReport& report, const Rates& rates);
/// The same for a way to hold the weights: a streamed model waits for the slower of memory and disk. None: no rate of
/// the disk.
KVASIR_API std::optional<double> decode_limit(const WeightChoice& choice, const PlanReport& report, const Rates& rates);

}  // namespace kvasir
