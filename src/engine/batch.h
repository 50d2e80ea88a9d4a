// Tasks that share passes while there is room: which run, which wait, and how a failed one leaves the others
// unaffected. generate.cc provides their prompts and sessions.
#pragma once

#include <list>
#include <optional>
#include <span>
#include <vector>

#include <kvasir/generate.h>

#include "engine/task.h"

namespace kvasir {

class Batch {
 public:
  Batch(Engine& engine, OnEvent on_event, OnDone on_done)
      : engine_(engine), on_event_(std::move(on_event)), on_done_(std::move(on_done)) {}

  /// Adds a task, the youngest so far. Requires: its session outlives this, if the task does not own it.
  void add(size_t index, Task task);
  size_t size() const { return members_.size(); }
  /// Runs one step with every task that has room, oldest first, and reports those that are done. At least one task
  /// advances, so calling step() until size() is 0 ends.
  void step();
  /// Passes the current step's rows of logits to this task, and its event to the caller.
  Result<void> take(size_t index, Task& task, std::span<const float> rows);

 private:
  struct Member {
    size_t index;
    Task task;
    std::optional<Feed> feed = {};    // next feed, not run yet
    bool waits = false;               // its session holds no memory
    std::optional<Error> error = {};  // the error that ends it

    bool runs() const { return !waits && !error && !task.generator.done(); }
    void wait();
  };
  using Members = std::list<Member>;

  void make_room();
  Result<void> room_for(Members::iterator member, bool alone);
  bool release_youngest_after(Members::iterator member);
  bool release_idle();
  void run(std::span<Member* const> running);
  void take_all(std::span<Member* const> running, PassOutput& out);
  Result<void> tell(size_t index, Task& task, Result<Event> event);
  void tell_done();

  Engine& engine_;
  OnEvent on_event_;
  OnDone on_done_;
  Members members_;                // by age
  std::vector<Session*> idle_;     // the caller's sessions whose tasks are done: the last whose memory is taken
  bool somebody_is_done_ = false;  // since the waiting tasks last tried to get memory
};

}  // namespace kvasir
