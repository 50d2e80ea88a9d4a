// Tasks that share passes, as many as there is room for: who runs, who waits, and what one that fails leaves to the
// others. Where their prompts and sessions come from is generate.cc's.
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

  /// The youngest from now on. Requires: the task's session outlives this if it is not its own.
  void add(size_t index, Task task);
  size_t size() const { return members_.size(); }
  /// Runs one step with all that there is room for, the oldest first, and tells who is done. There is always one that
  /// comes nearer to its end, so that step() until size() is 0 ends.
  void step();
  /// Gives this task the rows of the step at hand, and its caller the event.
  Result<void> take(size_t index, Task& task, std::span<const float> rows);

 private:
  struct Member {
    size_t index;
    Task task;
    std::optional<Feed> feed = {};    // asked for and not run yet
    bool waits = false;               // its session holds no memory
    std::optional<Error> error = {};  // that ends it

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
  std::vector<Session*> idle_;     // the caller's, whose tasks are done: their memory is the last to be taken
  bool somebody_is_done_ = false;  // since those who wait tried last
};

}  // namespace kvasir
