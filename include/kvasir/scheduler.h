// Many requests over one engine: a scheduler decides at every pass whose tokens are computed. Each answer is, bit for
// bit, what its request gives alone. HTTP is not known here. docs/scheduling.md has the rules.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include <kvasir/generate.h>

namespace kvasir {

using RequestId = uint64_t;

/// A prompt, and what is wanted of it.
struct Request {
  std::vector<int> prompt;
  /// on_event, whole_text and rss are not looked at.
  GenerateOptions options = {};
  int choices = 1;  ///< continuations; choice i is what sampling with choice i gives alone
  /// Ids of each choice that were generated before, by any server: the choice goes on after them as if it had not been
  /// interrupted. Empty: none.
  std::vector<std::vector<int>> resume = {};
  std::optional<Pooling> pooling = {};  ///< an embedding is wanted instead of text
  std::string owner = {};               ///< owners share the passes by weight
  double weight = 1;                    ///< of the owner
  int priority = 0;                     ///< within the owner: larger goes first
  double timeout_s = 0;                 ///< from submit(); 0: none
  bool reuse = true;                    ///< of kept texts; what is computed is kept too
  std::string salt = {};                ///< texts of one salt are not reused with another
};

/// The prompt has its memory, and `reused` of its tokens are not computed again.
struct Admitted {
  int reused = 0;
  /// The ids that follow them in the kept text, at most 16; of several such texts, the one used last (Reuse::kept_ids).
  std::vector<int> kept_ids = {};
};

/// The end of a choice, or of a request with Request::pooling.
struct Finished {
  Generation generation = {};  ///< of statistics, those of the cache only
  std::vector<float> embedding = {};
  int computed = 0, recomputed = 0;  ///< prompt tokens; all tokens, after preemptions
  int preemptions = 0;
  double queued_s = 0, first_token_s = 0, total_s = 0;  ///< from submit()
};

/// News of one choice.
struct RequestEvent {
  RequestId request = 0;
  int choice = 0;
  std::variant<Admitted, Event, Finished, Error> news;
};
/// All events of a pass at once, in the scheduler's thread.
using OnRequestEvents = std::function<void(std::span<RequestEvent> events)>;

struct SchedulerOptions {
  /// Layout, KV types, window. `ctx`: the most positions of a request; 0: the model's limit, or what the budget has
  /// room for. `salt` is the request's.
  SessionOptions session = {.layout = "paged"};
  int max_sequences = 64;              ///< in one pass, at most Engine::pass_tokens()
  double step_ms = 100;                ///< the time that a pass should take while somebody decodes; 0: no limit
  int max_queue = 256;                 ///< requests that wait; more are refused
  int64_t max_queue_tokens = 1 << 20;  ///< prompt tokens of those
  /// A small model of the same vocabulary that guesses how texts go on, while few sequences decode. All guesses are
  /// checked in the pass of the large model, so the answers and receipts are those without. Null: none.
  std::shared_ptr<const Model> draft = {};
  int draft_tokens = 4;                ///< guessed in a pass
  std::function<double()> clock = {};  ///< seconds; a test's own
};

/// Counters since the scheduler was made, and the state now. For requests that have finished, reused + computed are all
/// their prompt tokens.
struct SchedulerStats {
  int running = 0;                                                 ///< sequences with memory
  int waiting = 0;                                                 ///< sequences without
  int64_t submitted = 0, finished = 0, failed = 0, cancelled = 0;  ///< requests
  int64_t reused = 0, computed = 0;                                ///< prompt tokens, each counted once
  int64_t recomputed = 0, generated = 0;                           ///< tokens; computed again after a preemption
  int64_t guessed = 0, accepted = 0;
  int64_t preemptions = 0, passes = 0, pass_tokens = 0;
  double pass_s = 0, predicted_s = 0;  ///< sums over passes that were predicted
  size_t kv_used = 0;                  ///< bytes of the blocks of KV that sequences and kept texts hold
  size_t kv_capacity = 0;              ///< bytes that they may hold in all; SIZE_MAX: there is no budget
};

/// submit(), cancel(), drain() and stats() are for any thread; the rest is for the one that runs the engine, which
/// nobody else uses meanwhile.
class KVASIR_API Scheduler {
 public:
  /// Requires: the engine outlives it. Errors: those of Engine::open_session(); an option out of range.
  static Result<std::unique_ptr<Scheduler>> create(Engine& engine, SchedulerOptions options = {});
  ~Scheduler();

  /// Errors: an option out of range; a prompt and max_tokens that never fit (bad_argument, too_long); a full queue
  /// (busy); a scheduler that drains (closing).
  Result<RequestId> submit(Request request);
  /// Ends a request, or one choice of it, at the next pass: its last event is Finished with StopReason::cancelled. An
  /// id that is not known, or not any more, is ignored.
  void cancel(RequestId id, std::optional<int> choice = {});
  /// From now on nothing is taken; what has not finished when `timeout_s` are over fails (closing).
  void drain(double timeout_s);
  SchedulerStats stats() const;
  /// The most positions of a request.
  int ctx() const;

  /// One pass, if there is anything to compute. False: nothing is left to do now.
  bool run_once(const OnRequestEvents& on_events);
  /// Passes until drain() has ended; sleeps while there is nothing to do.
  void run(const OnRequestEvents& on_events);

 private:
  struct Impl;
  explicit Scheduler(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace kvasir
