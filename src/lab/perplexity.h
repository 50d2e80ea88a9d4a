// How well a model predicts a text. Reading the file, tokenising and printing are the command's.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include <kvasir/engine.h>

namespace kvasir {

struct PerplexityOptions {
  SessionOptions session;  ///< session.ctx is the window in tokens; 0: the model's own limit
  int windows = 0;         ///< only so many from the start; 0: all that the text fills
  /// After every window: how many are done, of how many, and the perplexity so far.
  std::function<void(int done, int all, double so_far)> progress = {};
};

struct PerplexityReport {
  double perplexity = 0;      ///< exp(nll)
  double standard_error = 0;  ///< of the perplexity: that of the mean nll, times the perplexity
  double nll = 0;             ///< mean of -ln p(token), over the scored tokens
  int64_t tokens = 0;         ///< of the text
  int64_t scored = 0;
  int window = 0, windows = 0;
  double seconds = 0;
};

/// llama-perplexity's way (ggml-org/llama.cpp, tools/perplexity), so that the two can be compared: whole windows one
/// after the other, each in a cache that starts empty; `bos`, where given, stands in for a window's first token; scored
/// are the tokens after the window's middle one (ctx / 2), ctx - ctx / 2 - 1 a window. `ids` is the whole text,
/// beginning with `bos` where the model wants it. Log-softmax in double, summed in the order of the text.
/// Errors: fewer ids than one window takes, a window under 3 tokens, those of Engine::open_session and step.
Result<PerplexityReport> perplexity(Engine& engine, std::span<const int> ids, std::optional<int> bos,
                                    const PerplexityOptions& options);

}  // namespace kvasir
