// Start and end of a generation.
#include "engine/task.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "base/rss.h"
#include "base/system.h"

namespace kvasir {

Result<void> check_prompt(const Model& model, std::span<const int> prompt, size_t held, int ctx) {
  if (held + prompt.size() == 0)
    return fail(Error::bad_argument, "the prompt is empty", "Generator::prompt", "a prompt of at least one token");
  if (const size_t end = held + prompt.size(); end > static_cast<size_t>(ctx))
    return fail(Error::too_long, fmt::format("a prompt of {} tokens does not fit the context of {}", end, ctx),
                "Generator::prompt", "a shorter prompt or a larger SessionOptions::ctx");
  return model.check_ids(prompt, "Generator::prompt");
}

Result<Task> Task::begin(Engine& engine, Session& session, std::span<const int> prompt,
                         const GenerateOptions& options) {
  KVASIR_CHECK(Generator::check(engine.model(), options));
  const auto held = options.whole_text ? std::span<const int>() : session.tokens();
  KVASIR_CHECK(check_prompt(engine.model(), prompt, held.size(), session.ctx()));
  std::vector<int> text(held.begin(), held.end());
  text.insert(text.end(), prompt.begin(), prompt.end());
  if (options.whole_text && engine.keeps_texts()) KVASIR_CHECK(engine.model().fingerprint());
  KVASIR_TRY(Generator generator, Generator::create(engine.shared_model(), std::move(text), options));
  Task task{.generator = std::move(generator), .session = &session, .options = &options};
  task.known.prompt_tokens = static_cast<int>(prompt.size());
  task.known.cached_tokens = session.pos();
  if (options.whole_text) {
    const double start = now_seconds();
    KVASIR_TRY(const Reuse reused, engine.reuse(session, prompt));
    task.known.cached_tokens = reused.tokens;
    task.known.differs = reused.differs;
    task.known.stats.reuse_ms = (now_seconds() - start) * 1e3;
  }
  return task;
}

// Its time is not part of the TTFT.
Result<void> Task::keep(Engine& engine) {
  if (!options->whole_text) return {};
  const double start = now_seconds();
  KVASIR_CHECK(engine.keep(*session));
  known.stats.keep_ms = (now_seconds() - start) * 1e3;
  return {};
}

Generation Task::finish(Engine& engine) {
  Generation g = generator.result();
  if (options->whole_text) (void)engine.keep(*session);  // whatever can fail has been done before
  g.prompt_tokens = known.prompt_tokens;
  g.cached_tokens = known.cached_tokens;
  g.differs = known.differs;
  g.waited = known.waited;
  GenStats& s = g.stats;
  s.reuse_ms = known.stats.reuse_ms;
  s.keep_ms = known.stats.keep_ms;
  s.ttft_ms += s.reuse_ms;
  s.cache = session->cache_stats();
  add_run_stats(engine, *options, &s);
  return g;
}

void add_run_stats(const Engine& engine, const GenerateOptions& options, GenStats* stats) {
  const ModelInfo& model = engine.model().info();
  stats->weights_bytes = model.weights_bytes;
  stats->weight_stats = engine.model().weight_stats();
  stats->weights = weights_mode_name(model.weights_mode);
  stats->threads = engine.threads();
  stats->cpu = engine.cpu();
  if (options.rss) stats->rss = rss_by_owner(model.tokenizer_bytes);
  stats->peak_rss_bytes = peak_rss_bytes();
}

}  // namespace kvasir
