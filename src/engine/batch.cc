// Room first, then a pass, then the news.
#include "engine/batch.h"

#include <algorithm>
#include <utility>

namespace kvasir {

void Batch::add(size_t index, Session& session, Stream stream, std::unique_ptr<Session> own) {
  members_.push_back({index, std::move(own), &session, std::move(stream), {}, false, {}});
}

bool Batch::full() const {
  return std::any_of(members_.begin(), members_.end(), [](const Member& m) { return m.waits; });
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

// The older takes from the younger, never the other way, so that the oldest always goes on. Those who wait try again
// when somebody has given memory back, or when nobody else is left.
void Batch::make_room() {
  const bool again = std::exchange(somebody_is_done_, false) ||
                     std::none_of(members_.begin(), members_.end(), [](const Member& m) { return m.runs(); });
  bool alone = true;  // none runs so far
  for (auto member = members_.begin(); member != members_.end(); ++member) {
    if (member->stream.done() || (member->waits && !again)) continue;
    if (!member->feed) member->feed = member->stream.next();
    auto room = room_for(member, alone);
    if (room) {
      member->waits = false;
      alone = false;
    } else if (alone) {
      member->error = std::move(room).error();
    } else if (!member->waits) {
      member->stream.wait();
      member->waits = true;
    }
  }
}

Result<void> Batch::room_for(Members::iterator member, bool alone) {
  auto room = engine_.make_room(*member->feed);
  while (!room && (release_youngest_after(member) || (alone && release_idle())))
    room = engine_.make_room(*member->feed);
  return room;
}

bool Batch::release_youngest_after(Members::iterator member) {
  for (auto other = std::prev(members_.end()); other != member; --other) {
    if (!other->runs()) continue;
    other->stream.wait();
    return other->waits = true;
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

// A step that fails has changed no session: it is tried with each alone, so that one's fault is not the others'.
void Batch::run(std::span<Member* const> running) {
  std::vector<Feed> feeds;
  for (const Member* member : running) feeds.push_back(*member->feed);
  StepOutput out;
  auto done = engine_.step(feeds, &out);
  if (!done && running.size() > 1) {
    for (size_t i = 0; i < running.size(); ++i) run(running.subspan(i, 1));
    return;
  }
  if (!done) {
    running[0]->error = std::move(done).error();
    return;
  }
  std::span<const float> rest = out.logits;
  for (Member* member : running) {
    const size_t rows = member->feed->all_logits ? member->feed->tokens.size() : 1;
    const size_t floats = rows * static_cast<size_t>(engine_.model().info().vocab);
    if (auto taken = member->stream.take(rest.first(floats)); !taken) member->error = std::move(taken).error();
    member->feed.reset();
    rest = rest.subspan(floats);
  }
}

void Batch::tell_done() {
  for (auto member = members_.begin(); member != members_.end();) {
    if (!member->error && !member->stream.done()) {
      ++member;
      continue;
    }
    if (member->error)
      on_done_(member->index, tl::unexpected(std::move(*member->error)));
    else
      on_done_(member->index, member->stream.finish());
    if (member->own == nullptr) idle_.push_back(member->session);
    member = members_.erase(member);
    somebody_is_done_ = true;
  }
}

}  // namespace kvasir
