// What a narrow KV type costs: logits against those of f32, over a text. Reading it, tokenising and printing are the
// command's.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <kvasir/engine.h>

namespace kvasir {

/// What K and V are stored in, by kv_types()' names.
struct KvPair {
  std::string k, v;
};

/// Three of each type: for K and V, for K alone, for V alone; the other one is f32. No names: every type but f32.
/// Errors: a type that is not known, f32, a type named twice.
Result<std::vector<KvPair>> drift_candidates(std::span<const std::string> types);

struct DriftOptions {
  SessionOptions session;  ///< of f32 and of every candidate, but for the types; ctx is the window in tokens
  int windows = 0;         ///< only so many from the start; 0: all that the text fills
  std::vector<KvPair> candidates = {};
  /// After every window: how many are done, of how many, and the perplexity of f32 so far.
  std::function<void(int done, int all, double so_far)> progress = {};
};

/// A candidate against f32, over the scored positions. What is not a number in any logit is none here either.
struct DriftRow {
  std::string kv_type_k, kv_type_v;
  size_t kv_bytes_per_token = 0;                     ///< of one position in all layers, K and V
  double max_delta_logit = 0, mean_delta_logit = 0;  ///< |logit - that of f32|, over the whole vocabulary
  double mean_kl = 0, max_kl = 0;                    ///< KL(f32 || candidate) of one position's softmax, in nats
  double top1_agreement = 0;                         ///< fraction of positions with the same largest logit
  double perplexity = 0, perplexity_change = 0;      ///< the change is a fraction of f32's
  /// Values that the type could not hold, scales of blocks for block types; over all tokens fed. A layout that forgets
  /// at every step counts what it writes again.
  int64_t saturated = 0;
};

struct DriftReport {
  double perplexity_f32 = 0;
  size_t kv_bytes_per_token_f32 = 0;
  int64_t tokens = 0;  ///< of the text
  int64_t scored = 0;
  int window = 0, windows = 0;
  double seconds = 0;
  std::vector<DriftRow> rows;  ///< in the order of the candidates
};

/// The windows and scored tokens of perplexity(). Every session is fed the text itself, not what it would have said
/// (teacher forcing), so that a position differs by its cache alone. Softmax and KL in double, sums in the order of the
/// text. Errors: no candidates, and those of perplexity().
Result<DriftReport> drift(Engine& engine, std::span<const int> ids, std::optional<int> bos,
                          const DriftOptions& options);

}  // namespace kvasir
