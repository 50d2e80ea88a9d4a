// Measuring a model: prefill and decode speed, time per step by position and layout, shared prefixes, replayed traces.
// bench() reports speeds only after it has verified the answers.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <kvasir/engine.h>
#include <kvasir/plan.h>
#include <kvasir/scheduler.h>
#include <kvasir/version.h>

namespace kvasir {

struct BenchOptions {
  int prompt = 512;          ///< tokens of the prefill test; 0: no such test
  int generate = 128;        ///< tokens of the decode test; 0: no such test
  int depth = 0;             ///< positions in the cache before either test starts
  int batch = 1;             ///< sequences in every step, each with different tokens of these lengths
  int repeats = 5;           ///< timed runs of each test
  std::vector<int> threads;  ///< thread counts to test; empty: the default count
  int prefill_chunk = 256;
  SessionOptions session;
  std::vector<std::string> verify_layouts;           ///< layouts to verify; empty: session.layout
  std::function<void(const std::string&)> progress;  ///< called before each run with its name
};

/// One test and thread count, named as llama-bench does: pp512, tg128; pp512@d4096 with a depth; tg128x8 for a batch of
/// 8.
struct BenchTest {
  std::string name;
  int threads = 0, batch = 1;
  double tok_s_median = 0, tok_s_min = 0, tok_s_max = 0;  ///< tokens/s of all sequences together, over the repeats
  double tok_s_mean = 0, tok_s_stddev = 0;  ///< sample standard deviation (repeats - 1); 0 for a single repeat
  /// Share of this machine's measured limit: for prefill, arithmetic of the weights' kind (Rates::flops or int8_ops);
  /// for decode, memory reads.
  double fraction_of_limit = 0;
};

struct BenchReport {
  bool verified = false;
  std::string cpu;  ///< the CPU path in use: "avx512_vnni"
  Rates limits;     ///< measured in this run with the last thread count; Rates::disk is empty
  std::vector<BenchTest> tests;
};

/// Verifies, then runs each test once untimed and `repeats` times timed, in the same sessions, truncated to `depth` in
/// between: as in llama-bench, memory is allocated and warm. measure_steps() shows the cost of growing. Errors:
/// internal, the verification failed ("speeds are not shown"); bad_argument; too_long, lengths that do not fit the
/// context.
KVASIR_API Result<BenchReport> bench(const std::shared_ptr<const Model>& model, const BenchOptions& options);

/// Decode steps of one sequence in one layout, one for each position.
struct StepSeries {
  std::string layout;
  std::vector<double> ms;        ///< [positions]: time of the step that fed position i
  std::vector<size_t> kv_bytes;  ///< [positions]: bytes of KV allocated after that step
  size_t copied_rows = 0;        ///< positions copied by growing, over all steps
};

/// Feeds `positions` tokens one at a time, `repeats` times in new sessions, and reports the median of each position.
/// Errors: bad_argument; those of Engine::open_session() and prefill().
KVASIR_API Result<StepSeries> measure_steps(const std::shared_ptr<const Model>& model, const SessionOptions& session,
                                            int threads, int positions, int repeats);

struct PrefixOptions {
  int shared = 2048, suffix = 16;  ///< tokens of the prefix that all texts share; of what follows it
  int threads = 0, repeats = 5;    ///< threads 0: the default count
  SessionOptions session = {.layout = "paged"};
};

/// Time to first token (TTFT) of texts that share a prefix. Medians over the repeats; every time starts at the call and
/// excludes tokenising.
struct PrefixReport {
  int shared = 0, suffix = 0;
  double ttft_cold_ms = 0;      ///< nothing to reuse
  double ttft_hit_ms = 0;       ///< the prefix is kept from an earlier text
  double ttft_snapshot_ms = 0;  ///< the prefix is loaded from a file in the page cache
  double suffix_ms = 0;         ///< the suffix alone, in a session that holds the prefix
  double tokenise_ms = 0;       ///< tokenising a text of shared + suffix tokens; 0 without a tokenizer
  double miss_ms = 0;           ///< part of the cold time: looking the text up in vain, and keeping it
  size_t snapshot_bytes = 0;    ///< size of the file
  double ttft_ratio() const { return ttft_cold_ms / ttft_hit_ms; }
  double snapshot_ratio() const { return ttft_cold_ms / ttft_snapshot_ms; }
  double miss_cost() const { return miss_ms / ttft_cold_ms; }
};

/// Measures cold, hit, snapshot and suffix alternately, `repeats` times with new tokens each, after one untimed round
/// that warms up memory. Errors: bad_argument; too_long, lengths that do not fit the context; internal, the receipts of
/// one text differ: then no time is reported.
KVASIR_API Result<PrefixReport> bench_prefix(const std::shared_ptr<const Model>& model, const PrefixOptions& options);

/// One request of a trace of arrivals (docs/formats/trace.md). Prompts consist of runs of synthetic tokens, so that a
/// trace fits every vocabulary; runs with the same salt share a prefix.
struct TraceRequest {
  struct Run {
    int tokens = 0, salt = 0;
  };
  std::string name;
  double at_s = 0;         ///< arrival, seconds from the start
  std::string after;       ///< name of the request whose end it follows; empty: it arrives at at_s
  double think_s = 0;      ///< seconds between the end of `after` and its arrival
  bool continues = false;  ///< its prompt starts with the prompt and the answer of `after`
  std::vector<Run> prompt;
  int max_tokens = 16, choices = 1;  ///< GenerateOptions::max_tokens, Request::choices
  std::string owner;                 ///< Request::owner, weight, priority
  double weight = 1;
  int priority = 0;
  int cancel_after = -1;  ///< the client cancels after this many tokens of all choices; -1: never
};

/// Reads a trace. Errors: not_found; damaged, a line that is not a request, a name used twice, an `after` that names no
/// earlier line.
KVASIR_API Result<std::vector<TraceRequest>> read_trace(const std::string& path);

struct Percentiles {
  double p50 = 0, p95 = 0, p99 = 0, most = 0;  ///< most: the maximum
};

/// The ids of a run: pseudo-random over the vocabulary, the same on every call.
KVASIR_API std::vector<int> trace_ids(const TraceRequest::Run& run, int vocab);

/// The results of one replay. Times are seconds since a request was due. For a remote server, `stats` contains only
/// what its answers report.
struct ServeReport {
  SchedulerStats stats;
  bool elsewhere = false;   ///< a remote server: passes, preemptions, drafts and memory are unknown
  bool reused_told = true;  ///< whether stats.reused and stats.computed are known
  int requests = 0;
  double wall_s = 0;                                     ///< duration of the replay
  Percentiles first_token_s, between_tokens_s, total_s;  ///< TTFT; gap between events of a choice; whole request
  std::map<std::string, Percentiles> first_token_s_of_owner;
  double generated_tok_s = 0;
  size_t peak_kv_bytes = 0, peak_rss_bytes = 0;  ///< KV: of sequences and kept texts
};

/// The state of a replay: which requests are due when, their prompts, and the measured times. The caller takes due
/// requests, sends them, and reports their tokens and ends. Every `now` is in seconds from the start.
class KVASIR_API TraceReplay {
 public:
  /// Requires: `trace` comes from read_trace() and outlives this; `vocab` is the model's vocabulary size.
  TraceReplay(const std::vector<TraceRequest>& trace, int vocab);
  ~TraceReplay();

  /// Whether all requests have ended.
  bool is_over() const;
  /// When the next request is due; none: no request is due before another one ends.
  std::optional<double> next_due() const;
  /// Returns the index of a request that is due at `now` and marks it as under way; none: no request is due.
  std::optional<size_t> take_due(double now);
  /// The request's token ids. Requires: the request is under way, or others continue it.
  const std::vector<int>& prompt(size_t request) const;
  /// Reports that tokens of a choice have arrived. Returns true once, when the client cancels (cancel_after).
  bool see_tokens(size_t request, int choice, int tokens, double now);
  /// Reports that all choices have ended or the client has left; requests that follow become due. `answer`: ids of
  /// choice 0.
  void see_end(size_t request, std::vector<int> answer, double now);
  /// As see_end(), for a request that failed: it gets no total time.
  void see_failure(size_t request, double now);

  /// Sets the times, request count and percentiles of `report`, at the end of the replay.
  void report(ServeReport* report, double now) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

struct ServeOptions {
  std::vector<TraceRequest> trace;
  SchedulerOptions scheduler;
  EngineOptions engine = {.prefix_ram = size_t{1} << 40};
};

/// Replays a trace through a Scheduler in real time. Errors: those of Scheduler::create() and submit().
KVASIR_API Result<ServeReport> bench_serve(const std::shared_ptr<const Model>& model, const ServeOptions& options);

}  // namespace kvasir
