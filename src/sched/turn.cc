// One pass: which sequences are in it, the pass itself, and the events that follow from it.
#include <algorithm>
#include <climits>
#include <utility>

#include "math/tile.h"
#include "sched/scheduler_impl.h"

namespace kvasir {

using sched::Owners;
using sched::PassShape;

namespace {

// Draft tokens are worth their rows only while few sequences decode.
bool few_decode(std::span<const sched::Need> needs) {
  constexpr int kFew = 4;
  return std::count_if(needs.begin(), needs.end(), [](const auto& need) { return need.tokens == 1; }) < kFew;
}

PassShape shape_of(int64_t from, int64_t tokens) {
  return {static_cast<int>(tokens), tokens * from + tokens * (tokens + 1) / 2};
}

void add(PassShape* sum, const PassShape& more) {
  sum->tokens += more.tokens;
  sum->positions += more.positions;
}

}  // namespace

bool Scheduler::Impl::turn() {
  std::vector<Part> parts = compose_pass();
  if (parts.empty()) return false;
  run(parts);
  return true;
}

// ---- composing ----------------------------------------------------------------------------------------------------

// Older sequences reserve their memory first; a sequence that is preempted meanwhile is not in the pass.
std::vector<Scheduler::Impl::Part> Scheduler::Impl::compose_pass() {
  const std::vector<Sequence*> all = running;
  std::vector<sched::Need> needs;
  for (const Sequence* sequence : all) needs.push_back({sequence->lacks(), sequence->age});
  const std::vector<int> tokens = sched::compose(needs, prompt_room(needs));
  const bool few = few_decode(needs);
  const auto guessed = guesses(all, needs);
  std::vector<Part> parts;
  for (size_t i = 0; i < all.size(); ++i) {
    Sequence& sequence = *all[i];
    if (tokens[i] == 0 || sequence.session == nullptr) continue;
    int most = sequence.session->recomputes() ? INT_MAX : tokens[i];
    if (few && needs[i].tokens == 1)
      most = 1 + std::max(sequence.job->request.options.lookup, static_cast<int>(guessed[i].size()));
    const Feed feed = sequence.next(most, guessed[i]);
    if (make_room(sequence, feed)) parts.push_back({&sequence, feed, sequence.session->computed()});
  }
  std::erase_if(parts, [](const Part& part) { return part.sequence->session == nullptr; });
  return parts;
}

// Draft tokens for the decoding sequences, while these are few.
std::vector<std::vector<int>> Scheduler::Impl::guesses(std::span<Sequence* const> all,
                                                       std::span<const sched::Need> needs) {
  std::vector<std::vector<int>> guessed(all.size());
  if (draft == nullptr || !few_decode(needs)) return guessed;
  std::vector<sched::Draft::Ask> asks;
  std::vector<size_t> of;
  for (size_t i = 0; i < all.size(); ++i) {
    const Generator* const generator = all[i]->generator();
    if (needs[i].tokens > 1 || generator == nullptr || generator->generated().empty()) continue;
    asks.push_back({all[i], generator->tokens(), options.draft_tokens});
    of.push_back(i);
  }
  auto guesses_of_asks = draft->guess(asks);
  for (size_t i = 0; i < of.size(); ++i) guessed[of[i]] = std::move(guesses_of_asks[i]);
  return guessed;
}

// Number of prompt tokens in a pass, besides one token for each decoding sequence.
int Scheduler::Impl::prompt_room(std::span<const sched::Need> needs) const {
  PassShape decodes;
  int64_t depth = 0;
  for (size_t i = 0; i < needs.size(); ++i) {
    const int64_t computed = running[i]->session->computed();
    if (needs[i].tokens == 1)
      add(&decodes, shape_of(computed, 1));
    else
      depth = std::max(depth, computed);
  }
  const int most = std::max(1, engine.pass_tokens() - decodes.tokens);
  if (decodes.tokens == 0 || options.step_ms == 0) return most;
  return pace.prompt_tokens(options.step_ms / 1e3, decodes, depth, most);
}

// ---- the pass -----------------------------------------------------------------------------------------------------

// A failed pass has changed no session. Each sequence is then tried alone, so that one's error does not end the others.
void Scheduler::Impl::run(std::span<Part> parts) {
  std::vector<Feed> feeds;
  PassShape shape;
  for (const Part& part : parts) {
    feeds.push_back(part.feed);
    add(&shape, shape_of(part.from, part.tokens()));
  }
  PassOutput out;
  const double start = options.clock();
  auto done = engine.step(feeds, &out);
  const double seconds = options.clock() - start;
  if (!done && parts.size() > 1) {
    for (size_t i = 0; i < parts.size(); ++i) run(parts.subspan(i, 1));
    return;
  }
  if (!done) return end(*parts[0].sequence, std::move(done).error());
  ++stats.passes;
  stats.pass_tokens += shape.tokens;
  if (pace.knows()) {
    stats.pass_s += seconds;
    stats.predicted_s += pace.predict(shape);
  }
  if (shape.tokens <= std::max<int>(engine.pass_tokens(), static_cast<int>(parts.size()))) pace.add(shape, seconds);
  take(parts, out);
}

// The generators choose tokens in parallel; events are added in order afterwards.
void Scheduler::Impl::take(std::span<Part> parts, PassOutput& out) {
  struct Row {
    Sequence* sequence;
    FeedOutput* of;
    Result<Event> event = {};
  };
  std::vector<Row> rows;
  for (size_t i = 0; i < parts.size(); ++i) {
    Sequence& sequence = *parts[i].sequence;
    rows.push_back({&sequence, &out[i]});
    if (!sequence.forks || out[i].logits.empty()) continue;
    for (Sequence* fork : fork_choices(sequence)) rows.push_back({fork, &out[i]});
  }
  engine.in_parallel(rows.size(), [&](size_t i) {
    Row& r = rows[i];
    if (r.of->error) return;
    if (Generator* generator = r.sequence->generator())
      r.event = generator->take(r.of->logits);
    else
      r.sequence->pooler()->take(r.of->hidden);
  });
  for (size_t i = 0; i < parts.size(); ++i)
    if (!out[i].error) count(parts[i]);
  for (Row& r : rows) take_news(*r.sequence, r.of->error ? tl::unexpected(*r.of->error) : std::move(r.event));
}

// Forks the choices that wait for this one's prompt, once it has been computed; they choose from the same logits. A
// choice that finds no room waits on its own from now on.
std::vector<Scheduler::Impl::Sequence*> Scheduler::Impl::fork_choices(Sequence& leader) {
  std::vector<Sequence*> forks;
  leader.forks = false;
  for (const auto& other : leader.job->choices) {
    if (other->over || !other->waits_for_prompt) continue;
    other->waits_for_prompt = false;
    may_admit = true;
    if (running.size() >= static_cast<size_t>(options.max_sequences)) continue;
    auto fork = leader.session->fork();
    if (!fork) continue;
    auto session = std::make_unique<Session>(std::move(*fork));
    other->work = leader.generator()->fork(other->choice, *session);
    start(*other, std::move(session), {});
    forks.push_back(other.get());
  }
  return forks;
}

// ---- the news -----------------------------------------------------------------------------------------------------

void Scheduler::Impl::take_news(Sequence& sequence, Result<Event> event) {
  if (!event) return end(sequence, std::move(event).error());
  if (!event->ids.empty()) {
    if (!sequence.first_token) {
      sequence.first_token = options.clock();
      if (viewer != nullptr) viewer->first_token(*sequence.first_token - sequence.job->submitted);
    }
    const auto chosen = static_cast<int64_t>(event->ids.size());
    stats.generated += chosen;
    owners.charge(sequence.job->request.owner, Owners::kGenerated * static_cast<double>(chosen));
  }
  if (!event->ids.empty() || event->stop) add_event(sequence, std::move(*event));
  if (sequence.is_done()) finish(sequence);
}

// Counts tokens when they are computed for the first time; a prompt counts once for all choices. Then publishes
// complete tiles of the prompt for requests with the same prefix.
void Scheduler::Impl::count(const Part& part) {
  Sequence& sequence = *part.sequence;
  Job& job = *sequence.job;
  const int to = sequence.session->computed(), prompt = job.prompt_tokens();
  const int of_prompt = std::min(to, prompt);
  const int fresh = std::max(0, of_prompt - std::max(part.from, job.reached));
  const int again = std::max(0, std::min(to, std::max(job.reached, sequence.reached)) - part.from);
  job.computed += fresh;
  job.recomputed += again;
  stats.computed += fresh;
  stats.recomputed += again;
  job.reached = std::max(job.reached, of_prompt);
  sequence.reached = std::max(sequence.reached, to);
  owners.charge(job.request.owner, fresh);
  if (job.request.reuse && part.from < prompt && to / kTilePositions > part.from / kTilePositions)
    (void)engine.publish(*sequence.session);  // if it fails, others compute the prefix themselves
}

}  // namespace kvasir
