// Replays a trace of arrivals through the scheduler, without sockets. trace.cc decides which request is due when.
#include <kvasir/bench.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>

#include "base/clock.h"
#include "base/system.h"

namespace kvasir {
namespace {

/// Submits due requests to the scheduler and reports its events to the replay.
class Player {
 public:
  Player(const std::vector<TraceRequest>& trace, Scheduler& scheduler, TraceReplay* replay)
      : trace_(trace), scheduler_(scheduler), replay_(*replay) {}

  /// Submits all requests that are due at `now`.
  Result<void> submit(double now) {
    while (const auto i = replay_.take_due(now)) {
      KVASIR_TRY(const RequestId id, scheduler_.submit(make(*i)));
      open_[id] = {.index = *i, .left = trace_[*i].choices};
    }
    return {};
  }

  void see(std::span<RequestEvent> events, double now) {
    for (RequestEvent& event : events) {
      Open& open = open_.at(event.request);
      if (const auto* news = std::get_if<Event>(&event.news)) {
        const int tokens = static_cast<int>(news->ids.size());
        if (replay_.see_tokens(open.index, event.choice, tokens, now)) scheduler_.cancel(event.request);
      }
      auto* done = std::get_if<Finished>(&event.news);
      if (done != nullptr && event.choice == 0) open.answer = std::move(done->generation.tokens);
      open.failed |= std::holds_alternative<Error>(event.news);
      if (done == nullptr && !std::holds_alternative<Error>(event.news)) continue;
      if (--open.left == 0) end(event.request, now);
    }
  }

 private:
  struct Open {
    size_t index = 0;
    int left = 0;  // choices
    bool failed = false;
    std::vector<int> answer = {};
  };

  Request make(size_t i) const {
    const TraceRequest& t = trace_[i];
    Request request{.prompt = replay_.prompt(i)};
    request.options.sampling = {.temperature = 0};
    request.options.max_tokens = t.max_tokens;
    request.options.ignore_eos = true;
    request.choices = t.choices;
    request.owner = t.owner;
    request.weight = t.weight;
    request.priority = t.priority;
    return request;
  }

  void end(RequestId id, double now) {
    Open open = std::move(open_.at(id));
    open_.erase(id);
    if (open.failed)
      replay_.see_failure(open.index, now);
    else
      replay_.see_end(open.index, std::move(open.answer), now);
  }

  const std::vector<TraceRequest>& trace_;
  Scheduler& scheduler_;
  TraceReplay& replay_;
  std::map<RequestId, Open> open_;
};

}  // namespace

Result<ServeReport> bench_serve(const std::shared_ptr<const Model>& model, const ServeOptions& options) {
  KVASIR_TRY(const auto engine, Engine::create(model, options.engine));
  KVASIR_CHECK(model->fingerprint());  // reads all weights; kept texts need it, and no request should wait for it
  SchedulerOptions scheduling = options.scheduler;
  scheduling.max_queue = std::max(scheduling.max_queue, static_cast<int>(options.trace.size()));
  scheduling.max_queue_tokens = INT64_MAX / 2;
  KVASIR_TRY(const auto scheduler, Scheduler::create(*engine, scheduling));
  TraceReplay replay(options.trace, model->info().vocab);
  Player player(options.trace, *scheduler, &replay);
  ServeReport report;
  const double start = now_seconds();
  const auto now = [start] { return now_seconds() - start; };
  while (!replay.is_over()) {
    KVASIR_CHECK(player.submit(now()));
    const bool ran = scheduler->run_once([&](std::span<RequestEvent> events) { player.see(events, now()); });
    report.peak_kv_bytes = std::max(report.peak_kv_bytes, engine->kv_used());
    const auto next = replay.next_due();
    if (!ran && next && *next > now()) std::this_thread::sleep_for(std::chrono::duration<double>(*next - now()));
  }
  report.stats = scheduler->stats();
  replay.report(&report, now());
  report.peak_rss_bytes = peak_rss_bytes();
  return report;
}

}  // namespace kvasir
