// A running generation of a caller of generate(): the generator, its session, and results that the generator lacks.
#pragma once

#include <memory>
#include <span>

#include <kvasir/generate.h>

namespace kvasir {

struct Task {
  Generator generator;
  Session* session;
  const GenerateOptions* options;
  Generation known = {};  ///< fields filled: cached_tokens, differs, waited, reuse_ms, keep_ms
  std::unique_ptr<Session> own = nullptr;

  /// Starts a generation; with whole_text, reuses the longest known prefix. Requires: session and options outlive this.
  /// Errors: those of Generator::create() and check_prompt(); no fingerprint although one is needed.
  static Result<Task> begin(Engine& engine, Session& session, std::span<const int> prompt,
                            const GenerateOptions& options);

  /// With whole_text, stores the session's positions as a prefix for later prompts. Errors: no fingerprint.
  Result<void> keep(Engine& engine);
  /// The result, once the generator is done.
  Generation finish(Engine& engine);
};

/// Fills in the statistics of the model, the engine and the process.
void add_run_stats(const Engine& engine, const GenerateOptions& options, GenStats* stats);

/// Errors: a prompt that does not fit a context of `ctx` after `held` tokens; an id that the model does not have; no
/// tokens.
Result<void> check_prompt(const Model& model, std::span<const int> prompt, size_t held, int ctx);

}  // namespace kvasir
