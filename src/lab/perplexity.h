// Measures how well a model predicts a text. Reading the file, tokenising and printing are in src/cli.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include <kvasir/engine.h>

namespace kvasir {

struct PerplexityOptions {
  SessionOptions session;  ///< session.ctx is the window in tokens; 0: the model's own limit
  int windows = 0;         ///< number of windows from the start; 0: all that the text fills
  /// Called after every window with the number of finished windows, of all windows, and the perplexity so far.
  std::function<void(int done, int all, double so_far)> progress = {};
};

struct PerplexityReport {
  double perplexity = 0;        ///< exp(nll)
  double standard_error = 0;    ///< of the perplexity: standard error of the mean nll, times the perplexity
  double nll = 0;               ///< mean of -ln p(token), over the scored tokens
  int64_t tokens = 0;           ///< in the text
  int64_t scored = 0;           ///< tokens scored
  int window = 0, windows = 0;  ///< tokens in a window; number of windows
  double seconds = 0;
};

/// Computes perplexity as llama-perplexity does (ggml-org/llama.cpp, tools/perplexity), so that the two can be
/// compared: consecutive whole windows, each in an empty cache; `bos`, if given, replaces the first token of each; the
/// tokens after the middle one (ctx / 2) are scored, ctx - ctx / 2 - 1 per window. `ids` is the whole text, beginning
/// with `bos` if the model wants it. Log-softmax in double, summed in the order of the text. Errors: fewer ids than one
/// window takes, a window under 3 tokens, those of Engine::open_session and step.
Result<PerplexityReport> perplexity(Engine& engine, std::span<const int> ids, std::optional<int> bos,
                                    const PerplexityOptions& options);

}  // namespace kvasir
