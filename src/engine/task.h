// A generation under way for a caller of generate(): the generator, its session, and what the generator does not know.
#pragma once

#include <memory>
#include <span>

#include <kvasir/generate.h>

namespace kvasir {

struct Task {
  Generator generator;
  Session* session;
  const GenerateOptions* options;
  Generation known = {};  ///< cached_tokens, differs, waited and the times of reuse and keep
  std::unique_ptr<Session> own = nullptr;

  /// Reuses what there is of a whole text. Requires: session and options outlive this. Errors: those of
  /// Generator::create() and check_prompt(); no fingerprint where one is needed.
  static Result<Task> begin(Engine& engine, Session& session, std::span<const int> prompt,
                            const GenerateOptions& options);

  /// Keeps what the session holds for texts to come, where whole_text asks for it. Errors: no fingerprint.
  Result<void> keep(Engine& engine);
  /// The result, once the generator is done.
  Generation finish(Engine& engine);
};

/// Fills in the statistics of the model, the engine and the process.
void add_run_stats(const Engine& engine, const GenerateOptions& options, GenStats* stats);

/// Errors: a prompt after `held` tokens that does not fit a context of `ctx`; an id that the model does not know; no
/// tokens at all.
Result<void> check_prompt(const Model& model, std::span<const int> prompt, size_t held, int ctx);

}  // namespace kvasir
