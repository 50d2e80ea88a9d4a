// Many requests over one engine: before every pass a scheduler decides whose tokens are computed. Each answer is bit
// for bit what its request gives alone. HTTP is not here. docs/scheduling.md has the rules.
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

/// A prompt, and what to compute for it.
struct Request {
  std::vector<int> prompt;
  /// on_event, whole_text and rss are ignored.
  GenerateOptions options = {};
  int choices = 1;  ///< number of continuations, 1..1024; choice i is what sampling with choice i gives alone
  /// [choices]: ids that were generated before, by any server; each choice continues after them as if it had not been
  /// interrupted. Empty: none.
  std::vector<std::vector<int>> resume = {};
  std::optional<Pooling> pooling = {};  ///< compute an embedding instead of text
  std::string owner = {};               ///< user or tenant; owners share the engine's time by weight
  double weight = 1;                    ///< weight of the owner, > 0
  int priority = 0;                     ///< order within the owner: larger goes first
  double timeout_s = 0;                 ///< seconds from submit() until the request fails (timed_out); 0: none
  bool reuse = true;                    ///< reuse prefixes of kept texts, and keep what is computed
  std::string salt = {};                ///< kept texts are reused only with the same salt
};

/// The request has memory, and the first `reused` tokens of its prompt are not computed again.
struct Admitted {
  int reused = 0;
  /// The ids that follow the reused tokens in the kept text, at most 16 (Reuse::kept_ids).
  std::vector<int> kept_ids = {};
};

/// The end of a choice, or of a request with Request::pooling.
struct Finished {
  Generation generation = {};         ///< with the statistics of the cache and the times only
  std::vector<float> embedding = {};  ///< [hidden] with Request::pooling, else empty
  int computed = 0, recomputed = 0;   ///< prompt tokens computed; all tokens computed again after preemptions
  int preemptions = 0;                ///< number of times that the sequence gave up its memory
  double queued_s = 0, first_token_s = 0, total_s = 0;  ///< seconds from submit() to admission, first token, end
};

/// An event of one choice: admission (once per request), new tokens, and at the end Finished or Error.
struct RequestEvent {
  RequestId request = 0;
  int choice = 0;
  std::variant<Admitted, Event, Finished, Error> news;
};
/// Called after a pass with all its events, in the thread that runs the scheduler.
using OnRequestEvents = std::function<void(std::span<RequestEvent> events)>;

struct SchedulerOptions {
  /// Layout, KV types and window of every sequence. `ctx`: context length of a request; 0: the model's limit, or as
  /// many positions as the budget has room for. `salt` comes from the request.
  SessionOptions session = {.layout = "paged"};
  int max_sequences = 64;              ///< most sequences in one pass, at most Engine::pass_tokens()
  double step_ms = 100;                ///< target time of a pass, in ms, while any sequence decodes; 0: no limit
  int max_queue = 256;                 ///< most requests that wait; more are refused (busy)
  int64_t max_queue_tokens = 1 << 20;  ///< most prompt tokens of waiting requests
  /// A small model with the same vocabulary that drafts tokens while few sequences decode (speculative decoding). The
  /// large model checks all drafted tokens in its pass, so answers and receipts equal those without. Null: none.
  std::shared_ptr<const Model> draft = {};
  int draft_tokens = 4;                ///< most tokens drafted per sequence and pass
  std::function<double()> clock = {};  ///< returns seconds, for tests; null: the system's
};

/// Counters since create(), and the current state. For finished requests, reused + computed equals their prompt tokens.
struct SchedulerStats {
  int running = 0;                                                 ///< sequences that hold memory
  int waiting = 0;                                                 ///< sequences that wait for memory
  int64_t submitted = 0, finished = 0, failed = 0, cancelled = 0;  ///< requests
  int64_t reused = 0, computed = 0;                                ///< prompt tokens, each counted once
  int64_t recomputed = 0, generated = 0;                 ///< tokens computed again after preemptions; tokens generated
  int64_t guessed = 0, accepted = 0;                     ///< tokens drafted, and accepted, by finished requests
  int64_t preemptions = 0, passes = 0, pass_tokens = 0;  ///< pass_tokens: computed, over all passes
  double pass_s = 0, predicted_s = 0;                    ///< seconds, summed over passes whose time was predicted
  size_t kv_used = 0;                                    ///< bytes of KV blocks that sequences and kept texts hold
  size_t kv_capacity = 0;                                ///< bytes that they may hold in all; SIZE_MAX: no budget
};

/// A sequence that has not ended.
struct CacheSequence {
  enum State { waiting, prefill, decode, preempted };
  uint64_t id = 0;  ///< the same in every view
  RequestId request = 0;
  int choice = 0;
  std::string owner, salt;  ///< of its request
  State state = waiting;
  int prompt = 0, reused = 0;  ///< tokens of the prompt; those of them that were not computed again
  int computed = 0;            ///< positions in its cache
  int generated = 0;           ///< tokens
  int max_tokens = -1;
  int preemptions = 0;
  std::vector<int> blocks = {};  ///< ids in the order of positions
  int copied = -1;               ///< the block that replaced a shared one last, when it was written to; -1: none

  bool operator==(const CacheSequence&) const = default;
};

/// A block of KV memory. A layout without blocks has one for each sequence.
struct CacheBlock {
  int id = 0;                            ///< the same in every view while the block lives, then given to another
  bool stored = false;                   ///< the prefix tree holds it
  std::vector<uint64_t> sequences = {};  ///< ids of the sequences that hold it

  bool operator==(const CacheBlock&) const = default;
};

/// A node of the prefix tree: an edge, and where it leads.
struct CacheNode {
  static constexpr size_t kMostIds = 64, kMostRequests = 16;
  uint64_t id = 0, parent = 0;  ///< parent 0: the root of its salt
  std::string salt;
  int depth = 0;         ///< tokens before the edge
  int tokens = 0;        ///< tokens of the edge
  double used = 0;       ///< when it was used last, on the scheduler's clock, to the observer's interval
  std::vector<int> ids;  ///< the first tokens of the edge, at most kMostIds
  /// Requests whose tokens lead through it, of those that ran while somebody observed; the latest last, at most
  /// kMostRequests.
  std::vector<RequestId> requests = {};

  bool operator==(const CacheNode&) const = default;
};

/// A picture of the cache at one time.
struct CacheView {
  double time = 0;  ///< on the scheduler's clock
  std::vector<CacheSequence> sequences = {};
  std::vector<CacheBlock> blocks = {};  ///< by id
  std::vector<CacheNode> nodes = {};    ///< parents before their children
  std::vector<double> first_tokens =
      {};  ///< seconds to the first token, of requests that got theirs since the last view
  SchedulerStats stats = {};
  size_t weight_bytes = 0;  ///< of weights in memory
};
using OnCacheView = std::function<void(std::shared_ptr<const CacheView> view)>;

/// Any thread may call submit(), cancel(), drain(), observe(), stats() and ctx(). One thread calls the rest; until the
/// scheduler is gone it alone uses the engine.
class KVASIR_API Scheduler {
 public:
  /// Requires: the engine outlives the scheduler. Errors: bad_argument, an option out of range or a draft model with
  /// another vocabulary; those of Engine::open_session().
  static Result<std::unique_ptr<Scheduler>> create(Engine& engine, SchedulerOptions options = {});
  ~Scheduler();

  /// Queues a request and returns its id. Errors: bad_argument, an option out of range or an unknown id; too_long, a
  /// prompt and max_tokens that can never fit; busy, the queue is full; closing, the scheduler drains.
  Result<RequestId> submit(Request request);
  /// Ends a request, or one choice of it, before the next pass: its last event is Finished with StopReason::cancelled.
  /// An unknown id, or one that has ended, is ignored.
  void cancel(RequestId id, std::optional<int> choice = {});
  /// Refuses new requests from now on; those that have not finished after `timeout_s` seconds fail (closing).
  void drain(double timeout_s);
  SchedulerStats stats() const;
  /// Calls `on_view` now and after passes, at most once in `interval_s` seconds, in the thread that runs the scheduler;
  /// the last change is always shown. Null ends it; nothing is made for nobody.
  void observe(OnCacheView on_view, double interval_s = 0.1);
  /// Context length of a request, in positions.
  int ctx() const;

  /// Runs one pass, if there is anything to compute. Returns false if there was not and no request is left.
  bool run_once(const OnRequestEvents& on_events);
  /// Runs passes until drain() is complete; sleeps while there is nothing to do.
  void run(const OnRequestEvents& on_events);

 private:
  struct Impl;
  explicit Scheduler(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace kvasir
