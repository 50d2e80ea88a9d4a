// Requests arrive and end: submitting, cancelling, deadlines, draining, events.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <kvasir/catalog.h>

#include "base/clock.h"
#include "engine/engine_impl.h"
#include "sched/scheduler_impl.h"

namespace kvasir {

// ---- options ------------------------------------------------------------------------------------------------------

namespace {

Result<void> check(const SchedulerOptions& o) {
  if (o.max_sequences < 1)
    return fail(Error::bad_argument, fmt::format("{} sequences", o.max_sequences), "SchedulerOptions::max_sequences",
                "1 or more");
  if (o.step_ms < 0)
    return fail(Error::bad_argument, fmt::format("passes of {} ms", o.step_ms), "SchedulerOptions::step_ms",
                "0 or more");
  if (o.max_queue < 1 || o.max_queue_tokens < 1)
    return fail(Error::bad_argument, fmt::format("{} requests, {} tokens", o.max_queue, o.max_queue_tokens),
                "SchedulerOptions::max_queue", "1 or more");
  if (o.draft_tokens < 1)
    return fail(Error::bad_argument, fmt::format("{} draft tokens", o.draft_tokens), "SchedulerOptions::draft_tokens",
                "1 or more");
  return {};
}

}  // namespace

Scheduler::Scheduler(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Scheduler::~Scheduler() = default;

Result<std::unique_ptr<Scheduler>> Scheduler::create(Engine& engine, SchedulerOptions options) {
  KVASIR_CHECK(check(options));
  auto impl = std::make_unique<Impl>(engine, std::move(options));
  if (!impl->options.clock) impl->options.clock = now_seconds;
  impl->options.max_sequences = std::min(impl->options.max_sequences, engine.pass_tokens());
  KVASIR_CHECK(impl->set_limits());
  const SchedulerOptions& o = impl->options;
  if (o.draft != nullptr) {
    KVASIR_TRY(impl->draft, sched::Draft::create(engine.model(), o.draft, engine.threads(), o.session));
  }
  return std::unique_ptr<Scheduler>(new Scheduler(std::move(impl)));
}

// Every request may use the context that a session gets when it is alone: an answer must not end sooner because others
// are running.
Result<void> Scheduler::Impl::set_limits() {
  KVASIR_TRY(const Session alone, engine.open_session(options.session));
  ctx = alone.ctx();
  options.session.max_positions = ctx;
  capacity = engine.kv_room();
  KVASIR_TRY(const auto layout, catalog::find_layout(options.session.layout));
  if (!layout.pooled) return {};
  KVASIR_TRY(block, engine.kv_bytes(options.session, 1));
  return {};
}

int Scheduler::ctx() const { return impl_->ctx; }

// ---- from other threads -------------------------------------------------------------------------------------------

Result<RequestId> Scheduler::submit(Request request) {
  Impl& s = *impl_;
  KVASIR_TRY(auto job, sched::make_job(s.engine.shared_model(), std::move(request)));
  KVASIR_CHECK(s.check_fits(*job));
  job->submitted = s.options.clock();
  if (job->request.timeout_s > 0) job->deadline = job->submitted + job->request.timeout_s;
  const MutexLock lock(s.mutex);
  if (s.drain_until)
    return fail(Error::closing, "the scheduler accepts no more requests", "Scheduler", "another server");
  if (s.queued >= s.options.max_queue || s.queued_tokens + job->prompt_tokens() > s.options.max_queue_tokens)
    return fail(Error::busy, fmt::format("{} requests of {} tokens wait", s.queued, s.queued_tokens),
                "SchedulerOptions::max_queue", "the same request later");
  ++s.queued;
  s.queued_tokens += job->prompt_tokens();
  const RequestId id = job->id = ++s.last_id;
  s.inbox.push_back(std::move(job));
  s.news.notify_all();
  return id;
}

Result<void> Scheduler::Impl::check_fits(const Job& job) const {
  const Request& request = job.request;
  size_t longest = 0;
  for (const auto& sequence : job.choices) longest = std::max(longest, sequence->known().size());
  if (longest > static_cast<size_t>(ctx))
    return fail(Error::too_long, fmt::format("a prompt of {} tokens does not fit the context of {}", longest, ctx),
                "Generator::prompt", "a shorter prompt or a larger SessionOptions::ctx");
  if (block == 0 || request.options.max_tokens < 0) return {};
  const int end = std::min(ctx, job.prompt_tokens() + request.options.max_tokens);
  KVASIR_TRY(const size_t bytes, engine.kv_bytes(options.session, end));
  if (bytes > capacity)
    return fail(Error::too_long,
                fmt::format("a prompt of {} tokens and {} more need {} B of KV, {} B are available",
                            job.prompt_tokens(), request.options.max_tokens, bytes, capacity),
                "GenerateOptions::max_tokens", "fewer tokens or a larger ModelOptions::kv_ram");
  return {};
}

void Scheduler::cancel(RequestId id, std::optional<int> choice) {
  const MutexLock lock(impl_->mutex);
  impl_->cancels.emplace_back(id, choice);
  impl_->news.notify_all();
}

void Scheduler::drain(double timeout_s) {
  const MutexLock lock(impl_->mutex);
  impl_->drain_until = impl_->options.clock() + timeout_s;
  impl_->news.notify_all();
}

void Scheduler::observe(OnCacheView on_view, double interval_s) {
  const MutexLock lock(impl_->mutex);
  impl_->on_view = std::move(on_view);
  impl_->view_interval = interval_s;
  impl_->view_is_due = true;
  impl_->news.notify_all();
}

SchedulerStats Scheduler::stats() const {
  const MutexLock lock(impl_->mutex);
  return impl_->told;
}

// ---- the loop -----------------------------------------------------------------------------------------------------

bool Scheduler::run_once(const OnRequestEvents& on_events) {
  Impl& s = *impl_;
  s.take_inbox();
  s.expire();
  s.admit();
  const bool ran = s.turn();
  s.tell(on_events);
  return ran || !s.jobs.empty();
}

void Scheduler::run(const OnRequestEvents& on_events) {
  Impl& s = *impl_;
  while (!s.draining_is_over()) {
    if (run_once(on_events)) continue;
    s.show(true);
    const MutexLock lock(s.mutex);
    while (s.inbox.empty() && s.cancels.empty() && !s.drain_until && !s.view_is_due) s.news.wait(s.mutex);
  }
  s.take_inbox();
  for (auto& [id, job] : s.jobs)
    s.fail_all(*job, Error{Error::closing, "the scheduler stopped before the request was done", "Scheduler",
                           "the request again"});
  s.tell(on_events);
}

bool Scheduler::Impl::draining_is_over() {
  const MutexLock lock(mutex);
  return drain_until && ((jobs.empty() && inbox.empty()) || options.clock() >= *drain_until);
}

void Scheduler::Impl::take_inbox() {
  std::vector<std::unique_ptr<Job>> came;
  std::vector<std::pair<RequestId, std::optional<int>>> gone;
  {
    const MutexLock lock(mutex);
    came.swap(inbox);
    gone.swap(cancels);
  }
  may_admit = may_admit || !came.empty();
  for (auto& job : came) {
    ++stats.submitted;
    for (const auto& sequence : job->choices) owners.arrive(sequence->job->request.owner, job->request.weight);
    Job& taken = *(jobs[job->id] = std::move(job));
    for (const auto& sequence : taken.choices)
      if (sequence->is_done()) finish(*sequence);  // the resumed tokens are a complete answer already
  }
  for (const auto& [id, choice] : gone) cancel(id, choice);
}

void Scheduler::Impl::cancel(RequestId id, std::optional<int> choice) {
  const auto job = jobs.find(id);
  if (job == jobs.end()) return;
  for (const auto& sequence : job->second->choices) {
    if (sequence->over || (choice && sequence->choice != *choice)) continue;
    if (Generator* generator = sequence->generator()) generator->cancel();
    finish(*sequence);
  }
}

void Scheduler::Impl::expire() {
  const double now = options.clock();
  for (auto& [id, job] : jobs)
    if (job->deadline && now >= *job->deadline)
      fail_all(*job, Error{Error::timed_out, fmt::format("not done after {:g} s", job->request.timeout_s),
                           "Request::timeout_s", "a longer time or a shorter request"});
}

// ---- the ends of sequences ----------------------------------------------------------------------------------------

void Scheduler::Impl::add_event(const Sequence& sequence, std::variant<Admitted, Event, Finished, Error> what) {
  events.push_back({sequence.job->id, sequence.choice, std::move(what)});
}

void Scheduler::Impl::fail_all(Job& job, const Error& error) {
  for (const auto& sequence : job.choices)
    if (!sequence->over) end(*sequence, error);
}

void Scheduler::Impl::finish(Sequence& sequence) { end(sequence, sched::finished(sequence, options.clock())); }

// The outcome of its last choice decides how a request is counted.
void Scheduler::Impl::end(Sequence& sequence, std::variant<Admitted, Event, Finished, Error> last) {
  Job& job = *sequence.job;
  int64_t* count = &stats.failed;
  if (const auto* const done = std::get_if<Finished>(&last)) {
    count = done->generation.stop_reason == StopReason::cancelled ? &stats.cancelled : &stats.finished;
    stats.guessed += done->generation.guessed;
    stats.accepted += done->generation.accepted;
  }
  add_event(sequence, std::move(last));
  if (viewer != nullptr) viewer->add_trail(sequence);
  close(sequence);
  sequence.over = true;
  owners.leave(job.request.owner);
  if (sequence.forks) job.lead_next();
  may_admit = true;
  if (--job.left > 0) return;
  if (!job.admitted) leave_queue(job);
  ++*count;
}

void Scheduler::Impl::leave_queue(const Job& job) {
  const MutexLock lock(mutex);
  --queued;
  queued_tokens -= job.prompt_tokens();
}

void Scheduler::Impl::forget_ended() {
  std::erase_if(jobs, [](const auto& job) { return job.second->left == 0; });
}

void Scheduler::Impl::tell(const OnRequestEvents& on_events) {
  forget_ended();
  stats.running = static_cast<int>(running.size());
  stats.waiting = -stats.running;
  for (const auto& [id, job] : jobs) stats.waiting += job->left;
  stats.kv_used = engine.kv_used();
  stats.kv_capacity = capacity;
  {
    const MutexLock lock(mutex);
    told = stats;
  }
  std::vector<RequestEvent> of_pass = std::exchange(events, {});
  if (!of_pass.empty() && on_events) on_events(of_pass);
  show(false);
}

// Calls the observer if the interval is over, or at once; what has changed until then is shown later.
void Scheduler::Impl::show(bool at_once) {
  OnCacheView observer;
  const double now = options.clock();
  {
    const MutexLock lock(mutex);
    if (on_view == nullptr) view_is_due = false;
    if (on_view != nullptr && (at_once ? view_is_due : now - viewed >= view_interval)) observer = on_view;
    view_is_due = on_view != nullptr && !observer;
    if (on_view == nullptr) viewer.reset();
  }
  if (!observer) return;
  if (viewer == nullptr) viewer = std::make_unique<sched::CacheViewer>();
  viewed = now;
  observer(viewer->view(now, jobs, engine.impl().prefixes.get(), stats, engine.model().weight_stats()));
}

}  // namespace kvasir
