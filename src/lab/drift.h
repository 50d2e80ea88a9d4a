// Measures what a narrow KV type costs: logits compared with those of f32, over a text. Reading the text, tokenising
// and printing are in src/cli.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <kvasir/engine.h>

namespace kvasir {

/// The storage types of K and V, names of catalog::kv_types().
struct KvPair {
  std::string k, v;
};

/// Three candidates for each type: for K and V, for K alone, for V alone; the other one is f32. No names: every type
/// except f32. Errors: an unknown type, f32, a type named twice.
Result<std::vector<KvPair>> drift_candidates(std::span<const std::string> types);

struct DriftOptions {
  SessionOptions session;  ///< for f32 and every candidate, except the KV types; ctx is the window in tokens
  int windows = 0;         ///< number of windows from the start; 0: all that the text fills
  std::vector<KvPair> candidates = {};
  /// Called after every window with the number of finished windows, of all windows, and the perplexity of f32 so far.
  std::function<void(int done, int all, double so_far)> progress = {};
};

/// A candidate compared with f32, over the scored positions. NaN in any logit makes the statistics NaN.
struct DriftRow {
  std::string kv_type_k, kv_type_v;
  size_t kv_bytes_per_token = 0;                     ///< bytes of one position in all layers, K and V
  double max_delta_logit = 0, mean_delta_logit = 0;  ///< |logit - logit of f32|, over the whole vocabulary
  double mean_kl = 0, max_kl = 0;                    ///< KL(f32 || candidate) of one position's softmax, in nats
  double top1_agreement = 0;                         ///< fraction of positions with the same largest logit
  double perplexity = 0, perplexity_change = 0;      ///< the change is a fraction of f32's
  /// Number of values outside the type's range (for block types, of block scales), over all tokens fed. A layout that
  /// recomputes counts values again that it writes again.
  int64_t saturated = 0;
};

struct DriftReport {
  double perplexity_f32 = 0;
  size_t kv_bytes_per_token_f32 = 0;
  int64_t tokens = 0;           ///< in the text
  int64_t scored = 0;           ///< tokens scored
  int window = 0, windows = 0;  ///< tokens in a window; number of windows
  double seconds = 0;
  std::vector<DriftRow> rows;  ///< in the order of the candidates
};

/// Compares every candidate with f32, over the windows and scored tokens of perplexity(). Every session is fed the text
/// itself, not its own output (teacher forcing), so that only the cache differs between them. Softmax and KL in double,
/// sums in the order of the text. Errors: no candidates, and those of perplexity().
Result<DriftReport> drift(Engine& engine, std::span<const int> ids, std::optional<int> bos,
                          const DriftOptions& options);

}  // namespace kvasir
