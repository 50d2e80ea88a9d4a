// generate_batch: many prompts of one caller, run by a scheduler of its own.
#include <kvasir/generate.h>

#include <climits>
#include <deque>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include <kvasir/scheduler.h>

#include "engine/task.h"

namespace kvasir {
namespace {

/// The prompts that are in the scheduler, at most `batch` at a time.
class PromptsUnderWay {
 public:
  PromptsUnderWay(Engine& engine, Scheduler& scheduler, const GenerateOptions& options, const OnDone& on_done)
      : engine_(engine), scheduler_(scheduler), options_(options), on_done_(on_done) {}

  size_t under_way() const { return prompt_of_.size(); }

  void submit(size_t index, const std::vector<int>& prompt) {
    Request request{.prompt = prompt, .options = options_};
    request.reuse = options_.whole_text;
    if (auto id = scheduler_.submit(std::move(request)))
      prompt_of_[*id] = index;
    else
      on_done_(index, tl::unexpected(std::move(id).error()));
  }

  void see(std::span<RequestEvent> events) {
    for (RequestEvent& event : events) {
      const size_t index = prompt_of_.at(event.request);
      if (const auto* news = std::get_if<Event>(&event.news); news != nullptr && options_.on_event) {
        if (!options_.on_event(index, *news)) cancelled_.insert(event.request);
      } else if (auto* done = std::get_if<Finished>(&event.news)) {
        end(event.request, std::move(done->generation));
      } else if (auto* error = std::get_if<Error>(&event.news)) {
        end(event.request, tl::unexpected(std::move(*error)));
      }
    }
    for (const RequestId id : std::exchange(cancelled_, {})) scheduler_.cancel(id);
  }

 private:
  void end(RequestId id, Result<Generation> generation) {
    const size_t index = prompt_of_.at(id);
    prompt_of_.erase(id);
    if (generation) {
      if (cancelled_.erase(id) > 0) generation->stop_reason = StopReason::cancelled;
      add_run_stats(engine_, options_, &generation->stats);
    }
    on_done_(index, std::move(generation));
  }

  Engine& engine_;
  Scheduler& scheduler_;
  const GenerateOptions& options_;
  const OnDone& on_done_;
  std::map<RequestId, size_t> prompt_of_;
  std::set<RequestId> cancelled_;
};

}  // namespace

Result<void> generate_batch(Engine& engine, const SessionOptions& session, std::span<const std::vector<int>> prompts,
                            int batch, const GenerateOptions& options, const OnDone& on_done) {
  if (batch < 1)
    return fail(Error::bad_argument, fmt::format("{} sequences in a batch", batch), "generate_batch::batch",
                "1 or more");
  KVASIR_CHECK(Generator::check(engine.model(), options));
  KVASIR_TRY(const auto scheduler, Scheduler::create(engine, {.session = session,
                                                              .max_sequences = batch,
                                                              .step_ms = 0,
                                                              .max_queue = INT_MAX,
                                                              .max_queue_tokens = INT64_MAX}));
  std::deque<size_t> next;  // prompts that passed the check
  for (size_t i = 0; i < prompts.size(); ++i) {
    if (auto good = check_prompt(engine.model(), prompts[i], 0, scheduler->ctx()))
      next.push_back(i);
    else
      on_done(i, tl::unexpected(std::move(good).error()));
  }
  PromptsUnderWay going(engine, *scheduler, options, on_done);
  while (!next.empty() || going.under_way() > 0) {
    for (; !next.empty() && going.under_way() < static_cast<size_t>(batch); next.pop_front())
      going.submit(next.front(), prompts[next.front()]);
    scheduler->run_once([&](std::span<RequestEvent> events) { going.see(events); });
  }
  return {};
}

}  // namespace kvasir
