// Requests that share a scheduler and memory for one and a half of them: they arrive, are cancelled, fork, are
// preempted and resumed at random, in passes of random size.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include <kvasir/catalog.h>
#include <kvasir/scheduler.h>

#include "lab/verify_acts.h"

namespace kvasir {
namespace {

constexpr int kChoices = 3;

// Options with random sampling, so that choices diverge after the prompt and write different rows to blocks they
// shared.
GenerateOptions drawn(size_t text, const KnownText& known) {
  constexpr int kTokens = 8;  // few, since the reference recomputes the whole text for each
  GenerateOptions options;
  options.sampling = {.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0, .seed = text};
  options.ignore_eos = true;
  options.receipt = true;
  options.max_tokens = std::min(kTokens, static_cast<int>(known.tokens.size()) - known.prompt);
  return options;
}

std::span<const int> prompt_of(const KnownText& known) {
  return std::span(known.tokens).first(static_cast<size_t>(known.prompt));
}

using Alone = std::vector<std::vector<Generation>>;  // [texts][kChoices]

Result<Alone> drawn_alone(const ActRun& run, SessionOptions session) {
  session.layout = "none";
  Alone alone;
  for (size_t text = 0; text < run.texts.size(); ++text) {
    const KnownText& known = run.texts[text];
    KVASIR_TRY(Session own, run.engine.open_session(session));
    KVASIR_TRY(auto choices, generate_samples(run.engine, own, prompt_of(known), kChoices, drawn(text, known)));
    alone.push_back(std::move(choices));
  }
  return alone;
}

class Crowd {
 public:
  Crowd(const ActRun& run, const Alone& alone, Scheduler& scheduler)
      : run_(run), alone_(alone), scheduler_(scheduler) {}

  // Runs twice as many requests as there are texts, and two more; between any two passes one may be cancelled.
  Result<void> go() {
    const size_t wanted = 2 * run_.texts.size() + 2;
    for (size_t sent = 0; sent < wanted || !texts_.empty();) {
      if (sent < wanted && below(random_, 3) > 0) {
        KVASIR_CHECK(submit(sent % run_.texts.size()));
        ++sent;
      }
      if (!texts_.empty() && below(random_, 40) == 0)
        scheduler_.cancel(std::next(texts_.begin(), below(random_, static_cast<int>(texts_.size())))->first);
      Result<void> seen;
      scheduler_.run_once([&](std::span<RequestEvent> events) { seen = see(events); });
      KVASIR_CHECK(seen);
    }
    return {};
  }

 private:
  struct Sent {
    size_t text;
    int left;  // choices
    bool drawn;
  };

  Result<void> submit(size_t text) {
    const KnownText& known = run_.texts[text];
    const auto prompt = prompt_of(known);
    const auto generated = std::span(known.tokens).subspan(static_cast<size_t>(known.prompt));
    Request request{.prompt = {prompt.begin(), prompt.end()}};
    const bool draws = below(random_, 2) == 0;
    request.options = drawn(text, known);
    if (!draws) {
      request.options.sampling = {.temperature = 0};
      request.options.max_tokens = static_cast<int>(generated.size());
    }
    request.options.lookup = below(random_, 3);
    request.choices = draws ? kChoices : 1 + below(random_, kChoices);
    request.priority = below(random_, 3);
    request.owner = std::to_string(below(random_, 3));
    request.reuse = below(random_, 4) > 0;
    if (!draws && below(random_, 3) == 0) {
      const auto had = generated.first(static_cast<size_t>(below(random_, static_cast<int>(generated.size()))));
      request.resume.emplace_back(had.begin(), had.end());
    }
    const int choices = request.choices;
    KVASIR_TRY(const RequestId id, scheduler_.submit(std::move(request)));
    texts_[id] = {text, choices, draws};
    return {};
  }

  Result<void> see(std::span<const RequestEvent> events) {
    for (const RequestEvent& event : events) {
      const auto sent = texts_.find(event.request);
      if (const auto* error = std::get_if<Error>(&event.news)) return tl::unexpected(*error);
      const auto* done = std::get_if<Finished>(&event.news);
      if (done == nullptr) continue;
      // A choice that was cancelled before it got any logits has nothing to compare.
      const Generation& g = done->generation;
      if (!g.receipt.empty() && !g.stats.cache.layout.empty() && sent->second.drawn)
        run_.compare_alone(g, alone_[sent->second.text][static_cast<size_t>(event.choice)]);
      else if (!g.receipt.empty() && !g.stats.cache.layout.empty())
        KVASIR_CHECK(run_.compare_generation(sent->second.text, g));
      if (--sent->second.left == 0) texts_.erase(sent);
    }
    return {};
  }

  const ActRun& run_;
  const Alone& alone_;
  Scheduler& scheduler_;
  std::mt19937 random_{5};
  std::map<RequestId, Sent> texts_;
};

}  // namespace

Result<void> schedule(const ActRun& run) {
  SessionOptions session = run.session;
  int longest = 0;
  for (const KnownText& text : run.texts) longest = std::max(longest, static_cast<int>(text.tokens.size()));
  session.max_positions = longest;
  KVASIR_TRY(const size_t alone, run.engine.kv_bytes(session, longest));
  const ModelInfo& info = run.engine.model().info();
  ModelOptions options;
  options.weights = info.weights_mode;
  options.with_tokenizer = false;
  options.kv_ram = alone + (alone + 1) / 2;
  KVASIR_TRY(const auto model, Model::open(info.path, options));
  KVASIR_TRY(
      const auto engine,
      Engine::create(model, {.threads = run.engine.threads(), .prefill_chunk = 32, .prefix_ram = options.kv_ram}));
  std::mt19937 random(6);
  double seconds = 0;  // a clock that gives passes random durations, so that pass sizes are random too
  KVASIR_TRY(const auto scheduler,
             Scheduler::create(*engine, {.session = session, .max_sequences = 8, .step_ms = 50, .clock = [&] {
                                           return seconds += below(random, 100) * 1e-3;
                                         }}));
  KVASIR_TRY(const Alone by_itself, drawn_alone(run, session));
  KVASIR_CHECK(Crowd(run, by_itself, *scheduler).go());
  KVASIR_TRY(const auto layout, catalog::find_layout(session.layout));
  KVASIR_TRY(const size_t block, run.engine.kv_bytes(session, 1));
  const bool presses = layout.pooled && alone > 3 * block;
  if (presses && scheduler->stats().preemptions == 0)
    return fail(Error::internal, "no sequence gave up its memory, so preemption was not tested", "verify schedule");
  return {};
}

}  // namespace kvasir
