// A step: make room, run a pass, report events.
#include "engine/batch.h"

#include <algorithm>
#include <utility>

namespace kvasir {

void Batch::add(size_t index, Task task) { members_.push_back({.index = index, .task = std::move(task)}); }

// Releases its session's memory to others. Its next feed stays to be run.
void Batch::Member::wait() {
  task.session->release();
  if (!task.generator.generated().empty()) ++task.known.waited;
  waits = true;
}

void Batch::step() {
  make_room();
  std::vector<Member*> running;
  for (Member& member : members_)
    if (member.runs()) running.push_back(&member);
  if (!running.empty()) run(running);
  tell_done();
}

// ---- room ---------------------------------------------------------------------------------------------------------

// Older tasks take memory from younger ones, never the other way, so the oldest always advances. Waiting tasks try
// again when memory was released, or when no other task runs.
void Batch::make_room() {
  const bool again = std::exchange(somebody_is_done_, false) ||
                     std::none_of(members_.begin(), members_.end(), [](const Member& m) { return m.runs(); });
  bool alone = true;  // no task runs so far
  for (auto member = members_.begin(); member != members_.end(); ++member) {
    if (member->task.generator.done() || (member->waits && !again)) continue;
    if (!member->feed) member->feed = member->task.generator.next(*member->task.session);
    auto room = room_for(member, alone);
    if (room) {
      member->waits = false;
      alone = false;
    } else if (alone || room.error().kind != Error::no_room) {
      member->error = std::move(room).error();
    } else if (!member->waits) {
      member->wait();
    }
  }
}

Result<void> Batch::room_for(Members::iterator member, bool alone) {
  auto room = engine_.make_room(*member->feed);
  while (!room && room.error().kind == Error::no_room && (release_youngest_after(member) || (alone && release_idle())))
    room = engine_.make_room(*member->feed);
  return room;
}

bool Batch::release_youngest_after(Members::iterator member) {
  for (auto other = std::prev(members_.end()); other != member; --other) {
    if (!other->runs()) continue;
    other->wait();
    return true;
  }
  return false;
}

bool Batch::release_idle() {
  if (idle_.empty()) return false;
  idle_.back()->release();
  idle_.pop_back();
  return true;
}

// ---- passes -------------------------------------------------------------------------------------------------------

// A failed step has changed no session. Each task is then tried alone, so that one's error does not end the others.
void Batch::run(std::span<Member* const> running) {
  std::vector<Feed> feeds;
  for (const Member* member : running) feeds.push_back(*member->feed);
  PassOutput out;
  auto done = engine_.step(feeds, &out);
  if (!done && running.size() > 1) {
    for (size_t i = 0; i < running.size(); ++i) run(running.subspan(i, 1));
    return;
  }
  if (!done) {
    running[0]->error = std::move(done).error();
    return;
  }
  take_all(running, out);
}

// The generators choose tokens in parallel; events are reported in order afterwards.
void Batch::take_all(std::span<Member* const> running, PassOutput& out) {
  std::vector<Result<Event>> events(running.size());
  engine_.in_parallel(running.size(), [&](size_t i) {
    if (!out[i].error) events[i] = running[i]->task.generator.take(out[i].logits);
  });
  for (size_t i = 0; i < running.size(); ++i) {
    Member& member = *running[i];
    if (out[i].error) events[i] = tl::unexpected(std::move(*out[i].error));
    if (auto told = tell(member.index, member.task, std::move(events[i])); !told)
      member.error = std::move(told).error();
    member.feed.reset();
  }
}

Result<void> Batch::take(size_t index, Task& task, std::span<const float> rows) {
  return tell(index, task, task.generator.take(rows));
}

// Stores the prompt as soon as it is computed, for tasks that wait for it.
Result<void> Batch::tell(size_t index, Task& task, Result<Event> event) {
  if (!event) return tl::unexpected(std::move(event).error());
  if (task.generator.generated().size() == event->ids.size()) KVASIR_CHECK(task.keep(engine_));
  if (on_event_ && !on_event_(index, *event)) task.generator.cancel();
  return {};
}

void Batch::tell_done() {
  for (auto member = members_.begin(); member != members_.end();) {
    if (!member->error && !member->task.generator.done()) {
      ++member;
      continue;
    }
    if (member->error)
      on_done_(member->index, tl::unexpected(std::move(*member->error)));
    else
      on_done_(member->index, member->task.finish(engine_));
    if (member->task.own == nullptr) idle_.push_back(member->task.session);
    member = members_.erase(member);
    somebody_is_done_ = true;
  }
}

}  // namespace kvasir
