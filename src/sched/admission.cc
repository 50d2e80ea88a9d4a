// Which sequences get memory and which are preempted. The oldest sequence is never preempted, so one always advances to
// its end.
#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "engine/model_impl.h"
#include "math/tile.h"
#include "sched/order.h"
#include "sched/scheduler_impl.h"

namespace kvasir {

SessionOptions Scheduler::Impl::session_options(const Sequence& sequence) const {
  SessionOptions session = options.session;
  session.salt = sequence.job->request.salt;
  return session;
}

// ---- admission ----------------------------------------------------------------------------------------------------

// Admits in order until one does not fit. A later one that would fit does not overtake it, or it might wait for ever.
// Nothing changes for waiting sequences until another arrives, leaves or publishes a prefix.
void Scheduler::Impl::admit() {
  if (!std::exchange(may_admit, false)) return;
  while (admit_one()) {
  }
}

// Returns false if no other sequence can be admitted now.
bool Scheduler::Impl::admit_one() {
  const std::vector<Sequence*> order = waiting_in_order();
  for (auto first = order.begin(); first != order.end();) {
    const std::string& owner = (*first)->job->request.owner;
    const auto end =
        std::find_if(first, order.end(), [&](const Sequence* s) { return s->job->request.owner != owner; });
    const Admission what = admit_one_of({first, end});
    if (what != Admission::nobody) return what == Admission::one;
    first = end;
  }
  return false;
}

std::vector<Scheduler::Impl::Sequence*> Scheduler::Impl::waiting_in_order() {
  std::vector<sched::Waiting> waiting;
  std::vector<Sequence*> sequences;
  // Prompt tokens that an owner's running sequences have yet to compute count as served; otherwise one owner would take
  // all places at once.
  std::map<std::string_view, double> promised;
  for (const Sequence* sequence : running) {
    const Job& job = *sequence->job;
    promised[job.request.owner] += std::max(0, job.prompt_tokens() - job.reached) / job.request.weight;
  }
  for (const auto& [id, job] : jobs)
    for (const auto& sequence : job->choices) {
      if (sequence->over || sequence->session != nullptr || sequence->waits_for_prompt) continue;
      const Request& request = job->request;
      const double served = owners.counter(request.owner) + promised[request.owner];
      waiting.push_back({request.owner, served, request.priority, id, sequence->bypassed});
      sequences.push_back(sequence.get());
    }
  std::vector<Sequence*> order;
  for (const size_t i : sched::admission_order(waiting)) order.push_back(sequences[i]);
  return order;
}

// An embedding needs the hidden state of every token, and a stored prefix has only K and V.
bool Scheduler::Impl::reuses(const Request& request) { return request.reuse && !request.pooling; }

int Scheduler::Impl::reusable(const Sequence& sequence) const {
  if (!reuses(sequence.job->request)) return 0;
  return engine.reusable(session_options(sequence), sequence.known()).value_or(0);  // reuse() reports the error
}

// Admits the first of an owner's sequences that need not wait for another to compute its prefix.
Scheduler::Impl::Admission Scheduler::Impl::admit_one_of(std::vector<Sequence*> waiting) {
  std::vector<int> kept;
  for (size_t i = 0; i < std::min(waiting.size(), sched::kBypassDepth); ++i) kept.push_back(reusable(*waiting[i]));
  const size_t ahead = sched::first_of_owner(kept, waiting[0]->bypassed);
  const auto first = waiting.begin() + static_cast<std::ptrdiff_t>(ahead);
  std::rotate(waiting.begin(), first, first + 1);
  for (size_t i = 0; i < waiting.size(); ++i) {
    if (running.size() >= static_cast<size_t>(options.max_sequences)) return Admission::no_room;
    Sequence& sequence = *waiting[i];
    const int now = reusable(sequence);
    if (must_follow(sequence, now)) {
      may_admit = true;
      continue;
    }
    const auto admitted = try_to_admit(sequence, now);
    if (!admitted) end(sequence, admitted.error());
    if (admitted && !*admitted) return Admission::no_room;
    if (i == 0 && ahead > 0) ++waiting[1]->bypassed;
    return Admission::one;
  }
  return Admission::nobody;
}

// Whether a running sequence is computing more of this one's prefix, which can be reused once it is published.
bool Scheduler::Impl::must_follow(const Sequence& sequence, int reusable) const {
  const Request& request = sequence.job->request;
  if (!reuses(request) || !engine.keeps_texts()) return false;
  return std::any_of(running.begin(), running.end(), [&](const Sequence* other) {
    const Request& theirs = other->job->request;
    return other->is_prefilling() && theirs.reuse && theirs.salt == request.salt &&
           sched::follows(sequence.known(), reusable, theirs.prompt);
  });
}

// Returns false if there is no room now.
Result<bool> Scheduler::Impl::try_to_admit(Sequence& sequence, int reusable) {
  KVASIR_TRY(const bool might, has_room(sequence, reusable));
  if (!might) return false;
  auto opened = engine.open_session(session_options(sequence));
  if (!opened && opened.error().kind == Error::no_room && !running.empty()) return false;
  if (!opened) return tl::unexpected(std::move(opened).error());
  auto session = std::make_unique<Session>(std::move(*opened));
  Reuse reused;
  if (reuses(sequence.job->request)) {
    KVASIR_TRY(reused, engine.reuse(*session, sequence.known()));
    // Reused blocks are no longer free for others, so there may be less room than before.
    KVASIR_TRY(const bool has, has_room(sequence, reused.tokens));
    if (!has) return false;
  }
  start(sequence, std::move(session), reused);
  return true;
}

// Whether there is room for all known tokens beyond the first `held`, one generated token, and a block for each running
// sequence. A sequence that was preempted twice waits until its whole answer fits. When nothing runs, there is always
// room.
Result<bool> Scheduler::Impl::has_room(const Sequence& sequence, int held) const {
  constexpr int kPatience = 2;
  const size_t room = engine.kv_room();
  if (running.empty() || block == 0 || room == SIZE_MAX) return true;
  const GenerateOptions& o = sequence.job->request.options;
  int end = static_cast<int>(sequence.known().size()) + 1;
  if (sequence.preemptions >= kPatience)
    end = o.max_tokens < 0 ? ctx : std::max(end, sequence.job->prompt_tokens() + o.max_tokens);
  KVASIR_TRY(const size_t all, engine.kv_bytes(options.session, std::min(end, ctx)));
  const size_t has = block * static_cast<size_t>(held / kTilePositions);
  const size_t others = block * (running.size() + static_cast<size_t>(sequence.job->left));
  return all - std::min(all, has) + others <= room;
}

void Scheduler::Impl::start(Sequence& sequence, std::unique_ptr<Session> session, const Reuse& reused) {
  Job& job = *sequence.job;
  sequence.session = std::move(session);
  if (sequence.age == 0) sequence.age = ++last_age;
  const auto place =
      std::find_if(running.begin(), running.end(), [&](const Sequence* other) { return other->age > sequence.age; });
  running.insert(place, &sequence);
  // Others may have published more of the prompt while this one waited.
  const int more = std::max(0, std::min(reused.tokens, job.prompt_tokens()) - job.reached);
  job.reused += more;
  job.reached += more;
  stats.reused += more;
  if (job.admitted) return;
  job.admitted = options.clock();
  leave_queue(job);
  add_event(sequence, Admitted{.reused = job.reused, .kept_ids = reused.kept_ids});
}

// ---- preemption ---------------------------------------------------------------------------------------------------

// Returns false if the sequence is not in this pass, because it was preempted or failed.
bool Scheduler::Impl::make_room(Sequence& sequence, const Feed& feed) {
  for (;;) {
    auto room = engine.make_room(feed);
    if (room) return true;
    if (room.error().kind == Error::no_room) {
      if (Sequence* const victim = victim_to_preempt()) {
        preempt(*victim);
        if (victim == &sequence) return false;
        continue;
      }
      // Stored prefixes may share this sequence's blocks, so that it must copy them to write; evicting removes the
      // need.
      if (engine.model().impl().memory.pool()->shrink(SIZE_MAX)) continue;
    }
    end(sequence, std::move(room).error());
    return false;
  }
}

// The youngest sequence of the owner with the highest counter, never the oldest of all. Null if only the oldest runs.
Scheduler::Impl::Sequence* Scheduler::Impl::victim_to_preempt() const {
  Sequence* victim = nullptr;
  double most = 0;
  for (Sequence* other : running) {
    if (other == running.front()) continue;
    const double had = owners.counter(other->job->request.owner);
    if (victim == nullptr || had >= most) victim = other, most = had;
  }
  return victim;
}

void Scheduler::Impl::preempt(Sequence& sequence) {
  ++sequence.preemptions;
  ++stats.preemptions;
  close(sequence);
}

// Its K and V stay as a stored prefix until the memory is needed.
void Scheduler::Impl::close(Sequence& sequence) {
  if (sequence.session == nullptr) return;
  if (sequence.job->request.reuse) (void)engine.keep(*sequence.session);  // if it fails, the tokens are computed again
  sequence.session.reset();
  std::erase(running, &sequence);
  may_admit = true;
  if (draft != nullptr) draft->forget(&sequence);
}

}  // namespace kvasir
