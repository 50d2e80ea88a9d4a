// Requests that share a scheduler and the memory of one and a half of them: they come, are cancelled, fork, are
// preempted and resumed at random, in passes of random size.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include <kvasir/catalog.h>
#include <kvasir/scheduler.h>

#include "lab/verify_acts.h"

namespace kvasir {
namespace {

constexpr int kBlockPositions = 64;

class Crowd {
 public:
  Crowd(const ActRun& run, Scheduler& scheduler) : run_(run), scheduler_(scheduler) {}

  // Twice as many requests as there are texts; somebody may cancel between any two passes.
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
  };

  Result<void> submit(size_t text) {
    const KnownText& known = run_.texts[text];
    const auto prompt = std::span(known.tokens).first(static_cast<size_t>(known.prompt));
    const auto generated = std::span(known.tokens).subspan(static_cast<size_t>(known.prompt));
    Request request{.prompt = {prompt.begin(), prompt.end()}};
    request.options.sampling = {.temperature = 0};
    request.options.ignore_eos = true;
    request.options.receipt = true;
    request.options.lookup = below(random_, 3);
    request.options.max_tokens = static_cast<int>(generated.size());
    request.choices = 1 + below(random_, 3);
    request.priority = below(random_, 3);
    request.owner = std::to_string(below(random_, 3));
    request.reuse = below(random_, 4) > 0;
    if (below(random_, 3) == 0) {
      const auto had = generated.first(static_cast<size_t>(below(random_, static_cast<int>(generated.size()))));
      request.resume.emplace_back(had.begin(), had.end());
    }
    const int choices = request.choices;
    KVASIR_TRY(const RequestId id, scheduler_.submit(std::move(request)));
    texts_[id] = {text, choices};
    return {};
  }

  Result<void> see(std::span<const RequestEvent> events) {
    for (const RequestEvent& event : events) {
      const auto sent = texts_.find(event.request);
      if (const auto* error = std::get_if<Error>(&event.news)) return tl::unexpected(*error);
      const auto* done = std::get_if<Finished>(&event.news);
      if (done == nullptr) continue;
      // A cancelled one that was never given a row has a receipt of nothing.
      if (!done->generation.receipt.empty() && !done->generation.stats.cache.layout.empty())
        KVASIR_CHECK(run_.compare_generation(sent->second.text, done->generation));
      if (--sent->second.left == 0) texts_.erase(sent);
    }
    return {};
  }

  const ActRun& run_;
  Scheduler& scheduler_;
  std::mt19937 random_{5};
  std::map<RequestId, Sent> texts_;
};

}  // namespace

Result<void> schedule(const ActRun& run) {
  SessionOptions session = run.session;
  int longest = 0;
  for (const KnownText& text : run.texts) longest = std::max(longest, static_cast<int>(text.tokens.size()));
  if (!session.slide) session.ctx = longest;
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
  double seconds = 0;  // a clock that makes every pass take any time, so that budgets of passes are any too
  KVASIR_TRY(const auto scheduler,
             Scheduler::create(*engine, {.session = session, .max_sequences = 8, .step_ms = 50, .clock = [&] {
                                           return seconds += below(random, 100) * 1e-3;
                                         }}));
  KVASIR_CHECK(Crowd(run, *scheduler).go());
  KVASIR_TRY(const auto layout, catalog::find_layout(session.layout));
  const bool presses = layout.pooled && longest > 3 * kBlockPositions;
  if (presses && scheduler->stats().preemptions == 0)
    return fail(Error::internal, "no sequence gave up its memory, so that nothing was tried", "verify schedule");
  return {};
}

}  // namespace kvasir
