// The scheduler's state and the steps of a turn. A turn takes new requests, admits sequences, composes a pass, runs it
// and reports events.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <kvasir/scheduler.h>

#include "base/mutex.h"
#include "sched/cache_view.h"
#include "sched/compose.h"
#include "sched/draft.h"
#include "sched/owners.h"
#include "sched/pace.h"
#include "sched/request.h"

namespace kvasir {

struct Scheduler::Impl {
  using Sequence = sched::Sequence;
  using Job = sched::Job;

  Engine& engine;
  SchedulerOptions options;
  int ctx = 0;
  size_t capacity = 0;  // bytes of KV that a single request may take; SIZE_MAX: no limit
  size_t block = 0;     // bytes of a KV block; 0: not a pooled layout, a session reserves its whole context

  // Shared with the threads that submit, cancel and read statistics.
  Mutex mutex;
  Condition news;
  std::vector<std::unique_ptr<Job>> inbox KVASIR_GUARDED_BY(mutex);
  std::vector<std::pair<RequestId, std::optional<int>>> cancels KVASIR_GUARDED_BY(mutex);
  RequestId last_id KVASIR_GUARDED_BY(mutex) = 0;
  int queued KVASIR_GUARDED_BY(mutex) = 0;  // requests that were not admitted yet
  int64_t queued_tokens KVASIR_GUARDED_BY(mutex) = 0;
  std::optional<double> drain_until KVASIR_GUARDED_BY(mutex);
  SchedulerStats told KVASIR_GUARDED_BY(mutex);
  OnCacheView on_view KVASIR_GUARDED_BY(mutex);  // null: nobody observes
  double view_interval KVASIR_GUARDED_BY(mutex) = 0;
  bool view_is_due KVASIR_GUARDED_BY(mutex) = false;  // something has changed since the last view

  // Used by the engine's thread only.
  std::map<RequestId, std::unique_ptr<Job>> jobs;
  std::vector<Sequence*> running;  // by age
  sched::Owners owners;
  sched::Pace pace;
  std::unique_ptr<sched::Draft> draft;  // null: no draft model
  SchedulerStats stats;
  uint64_t last_age = 0;
  bool may_admit = true;  // something has changed that may let a waiting sequence in
  std::vector<RequestEvent> events;
  std::unique_ptr<sched::CacheViewer> viewer;  // null: nobody observes
  double viewed = 0;                           // time of the last view

  Impl(Engine& e, SchedulerOptions o) : engine(e), options(std::move(o)) {}

  // ---- scheduler.cc: requests arrive and end
  Result<void> set_limits();
  Result<void> check_fits(const Job& job) const;
  void take_inbox();
  void cancel(RequestId id, std::optional<int> choice);
  void expire();
  bool draining_is_over();
  void tell(const OnRequestEvents& on_events);
  void show(bool at_once);
  void add_event(const Sequence& sequence, std::variant<Admitted, Event, Finished, Error> what);
  void end(Sequence& sequence, std::variant<Admitted, Event, Finished, Error> last);
  void fail_all(Job& job, const Error& error);
  void finish(Sequence& sequence);
  void leave_queue(const Job& job);
  void forget_ended();

  // ---- admission.cc: which sequences get memory, and which give it up
  void admit();
  std::vector<Sequence*> waiting_in_order();
  enum class Admission { one, nobody, no_room };
  bool admit_one();
  Admission admit_one_of(std::vector<Sequence*> waiting);
  static bool reuses(const Request& request);
  int reusable(const Sequence& sequence) const;
  bool must_follow(const Sequence& sequence, int reusable) const;
  Result<bool> try_to_admit(Sequence& sequence, int reusable);
  Result<bool> has_room(const Sequence& sequence, int held) const;
  void start(Sequence& sequence, std::unique_ptr<Session> session, const Reuse& reused);
  SessionOptions session_options(const Sequence& sequence) const;
  bool make_room(Sequence& sequence, const Feed& feed);
  Sequence* victim_to_preempt() const;
  void preempt(Sequence& sequence);
  void close(Sequence& sequence);

  // ---- turn.cc: one pass
  struct Part {
    Sequence* sequence;
    Feed feed;
    int from = 0;  // positions computed before the pass

    int tokens() const { return feed.session->pos() - from + static_cast<int>(feed.tokens.size()); }
  };
  bool turn();
  std::vector<Part> compose_pass();
  std::vector<std::vector<int>> guesses(std::span<Sequence* const> all, std::span<const sched::Need> needs);
  int prompt_room(std::span<const sched::Need> needs) const;
  void run(std::span<Part> parts);
  void take(std::span<Part> parts, PassOutput& out);
  std::vector<Sequence*> fork_choices(Sequence& leader);
  void take_news(Sequence& sequence, Result<Event> event);
  void count(const Part& part);
};

}  // namespace kvasir
