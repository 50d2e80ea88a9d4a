// Measuring a model: prefill and decode speed, time per step by position and layout. Refuses to give a speed before the
// answers have been verified.
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
  int prompt = 512;    ///< tokens of the prefill test; 0: none
  int generate = 128;  ///< tokens of the decode test; 0: none
  int depth = 0;       ///< positions filled before either test
  int batch = 1;       ///< sequences in every step, each with its own tokens of these lengths
  int repeats = 5;
  std::vector<int> threads;  ///< empty: the default
  int prefill_chunk = 256;
  SessionOptions session;
  std::vector<std::string> verify_layouts;  ///< layouts that the verification covers; empty: session.layout
  std::function<void(const std::string&)> progress;
};

/// One line of the table, named as llama-bench names it: pp512, tg128; pp512@d4096 when deep; tg128x8 for a batch of 8.
struct BenchTest {
  std::string name;
  int threads = 0, batch = 1;
  double tok_s_median = 0, tok_s_min = 0, tok_s_max = 0;  ///< tokens of all sequences together
  double tok_s_mean = 0, tok_s_stddev = 0;  ///< of a sample: divided by repeats - 1; 0 for a single repeat
  /// Of this machine's measured limit: arithmetic of the weights' kind for prefill, memory reads for decode.
  double fraction_of_limit = 0;
};

struct BenchReport {
  bool verified = false;
  std::string cpu;  ///< the CPU path in use: "avx512_vnni"
  Rates limits;     ///< measured in this run with the last thread count; the disk is not
  std::vector<BenchTest> tests;
};

/// Each test runs once untimed, then `repeats` times in the same sessions, taken back to `depth` in between: as in
/// llama-bench, memory is there and warm. What growing costs, measure_steps shows.
/// Errors: the verification failed ("speeds are not shown"), lengths that do not fit the context.
KVASIR_API Result<BenchReport> bench(const std::shared_ptr<const Model>& model, const BenchOptions& options);

/// One decode step at each position from 1 to `positions`, with one layout.
struct StepSeries {
  std::string layout;
  std::vector<double> ms;        ///< [positions]: the step that fed position i
  std::vector<size_t> kv_bytes;  ///< held after that step
  size_t copied_rows = 0;        ///< positions copied by growing, over all steps
};

/// Feeds one token at a time, `repeats` times, and keeps each position's median.
KVASIR_API Result<StepSeries> measure_steps(const std::shared_ptr<const Model>& model, const SessionOptions& session,
                                            int threads, int positions, int repeats);

struct PrefixOptions {
  int shared = 2048, suffix = 16;  ///< tokens that texts begin with, and that follow
  int threads = 0, repeats = 5;
  SessionOptions session = {.layout = "paged"};
};

/// First tokens of texts that begin alike. Medians; every time is from the call, without tokenising.
struct PrefixReport {
  int shared = 0, suffix = 0;
  double ttft_cold_ms = 0;      ///< nothing is known
  double ttft_hit_ms = 0;       ///< the beginning is kept of an earlier text
  double ttft_snapshot_ms = 0;  ///< the beginning is loaded from a file in the page cache
  double suffix_ms = 0;         ///< the suffix alone, in a session that holds the beginning
  double tokenise_ms = 0;       ///< of all the tokens; 0 without a tokenizer
  double miss_ms = 0;           ///< looking for the text in vain, and keeping it
  size_t snapshot_bytes = 0;
  double ttft_ratio() const { return ttft_cold_ms / ttft_hit_ms; }
  double snapshot_ratio() const { return ttft_cold_ms / ttft_snapshot_ms; }
  double miss_cost() const { return miss_ms / ttft_cold_ms; }
};

/// The ways alternate in every repeat, each with tokens of its own, after one that is not timed: the pool then has the
/// memory. Errors: lengths that do not fit the context; a
/// receipt that differs from the cold one, after which no time is told.
KVASIR_API Result<PrefixReport> bench_prefix(const std::shared_ptr<const Model>& model, const PrefixOptions& options);

/// One request of a trace of arrivals (docs/formats/trace.md). Prompts are made of runs of synthetic tokens, so that a
/// trace fits every vocabulary: runs of one salt begin alike.
struct TraceRequest {
  struct Run {
    int tokens = 0, salt = 0;
  };
  std::string name;
  double at_s = 0;         ///< when it comes, from the start
  std::string after;       ///< it comes after the end of this request instead
  double think_s = 0;      ///< so much later
  bool continues = false;  ///< its prompt begins with the prompt and the answer of `after`
  std::vector<Run> prompt;
  int max_tokens = 16, choices = 1;
  std::string owner;
  double weight = 1;
  int priority = 0;
  int cancel_after = -1;  ///< tokens; -1: never
};

/// Errors: a line that is no request, a request after one that does not come before it.
KVASIR_API Result<std::vector<TraceRequest>> read_trace(const std::string& path);

struct Percentiles {
  double p50 = 0, p95 = 0, p99 = 0, most = 0;
};

/// The ids of a run: all over the vocabulary, and the same every time.
KVASIR_API std::vector<int> trace_ids(const TraceRequest::Run& run, int vocab);

/// The results of one replay. Times are seconds from the moment at which a request was due. Of a server elsewhere,
/// `stats` has what its answers tell.
struct ServeReport {
  SchedulerStats stats;
  bool elsewhere = false;   ///< passes, preemptions, guesses and memory are not known
  bool reused_told = true;  ///< stats.reused and stats.computed are known
  int requests = 0;
  double wall_s = 0;
  Percentiles first_token_s, between_tokens_s, total_s;
  std::map<std::string, Percentiles> first_token_s_of_owner;
  double generated_tok_s = 0;
  size_t peak_kv_bytes = 0, peak_rss_bytes = 0;  ///< KV of sequences and of kept texts
};

/// The course of a replay: which requests are due when, what their prompts are, and the times that are reported. Who
/// replays a trace takes what is due, sends it, and tells what comes of it; moments are seconds from the start.
class KVASIR_API TraceReplay {
 public:
  /// Requires: a trace of read_trace(), which outlives this.
  TraceReplay(const std::vector<TraceRequest>& trace, int vocab);
  ~TraceReplay();

  /// Nothing is under way, and nothing will be.
  bool is_over() const;
  std::optional<double> next_due() const;
  /// The index of a request that is due at `now`, which is under way from then on; each once.
  std::optional<size_t> take_due(double now);
  /// Requires: the request is under way, or others continue it.
  const std::vector<int>& prompt(size_t request) const;
  /// Tokens of a choice have come. True: this is where the client leaves; it is told once.
  bool see_tokens(size_t request, int choice, int tokens, double now);
  /// All its choices have ended, or the client has left. `answer`: the ids of choice 0. Its followers become due.
  void see_end(size_t request, std::vector<int> answer, double now);
  /// The same for a request that failed: it has no total time.
  void see_failure(size_t request, double now);

  /// Sets what is known of times, requests and owners at the end.
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

/// Replays a trace through a Scheduler, in its own time. Errors: those of Scheduler::create() and submit().
KVASIR_API Result<ServeReport> bench_serve(const std::shared_ptr<const Model>& model, const ServeOptions& options);

}  // namespace kvasir
