// kvasir bench: speeds, after a verification.
#include <unistd.h>

#include <cstdio>

#include <fmt/format.h>

#include "base/system.h"
#include "cli/cli.h"
#include "cli/plot.h"
#include "cli/printable.h"
#include "cli/serve_report.h"
#include "serve/replay.h"

namespace kvasir::cli {
namespace {

struct Args {
  ModelArgs model;
  BenchOptions bench;
  std::string plot;
  int prefix = 0;
  std::string serve, draft;
  serve::ReplayOptions replay;
  int max_sequences = SchedulerOptions{}.max_sequences, draft_tokens = SchedulerOptions{}.draft_tokens;
  double step_ms = SchedulerOptions{}.step_ms;
  bool json = false, limits = false, cache_given = false;
};

std::string parameters(int64_t n) {
  const double millions = static_cast<double>(n) / 1e6;
  return millions >= 1000 ? fmt::format("{:.2f} B", millions / 1000) : fmt::format("{:.2f} M", millions);
}

std::string size(size_t bytes) {
  const double mib = static_cast<double>(bytes) / (1024.0 * 1024.0);
  return mib >= 1024 ? fmt::format("{:.2f} GiB", mib / 1024) : fmt::format("{:.2f} MiB", mib);
}

// "pp512@d4096" as llama-bench writes it: "pp512 @ d4096".
std::string spaced(std::string name) {
  if (const size_t at = name.find('@'); at != std::string::npos) name.replace(at, 1, " @ ");
  return name;
}

std::string limits_line(const Rates& r) {
  return fmt::format("{:.1f} GB/s read, {:.0f} GFLOP/s f32 FMA, {:.0f} Gop/s int8", r.memory / 1e9, r.flops / 1e9,
                     r.int8_ops / 1e9);
}

// llama-bench's columns, and the fraction of this machine's limit.
void print_table(const ModelInfo& m, const BenchReport& r, int repeats) {
  fmt::print("| {:<30} | {:>10} | {:>10} | {:<10} | {:>7} | {:>15} | {:>20} | {:>8} |\n", "model", "size", "params",
             "backend", "threads", "test", "t/s", "of limit");
  fmt::print("| {:-<30} | {:->10} | {:->10} | {:-<10} | {:->7} | {:->15} | {:->20} | {:->8} |\n", "", ":", ":", "", ":",
             ":", ":", ":");
  for (const BenchTest& t : r.tests)
    fmt::print("| {:<30} | {:>10} | {:>10} | {:<10} | {:>7} | {:>15} | {:>20} | {:>6.0f} % |\n",
               m.name + " " + m.weight_type, size(m.weights_bytes), parameters(m.parameters), "CPU " + r.cpu, t.threads,
               spaced(t.name), fmt::format("{:.2f} ± {:.2f}", t.tok_s_median, t.tok_s_stddev),
               100 * t.fraction_of_limit);
  fmt::print("verified; t/s: median ± standard deviation of {}; limits measured here: {}\n", repeats,
             limits_line(r.limits));
}

Json bench_json(const BenchReport& r) {
  Json tests = Json::array();
  for (const BenchTest& t : r.tests)
    tests.push_back({{"name", t.name},
                     {"threads", t.threads},
                     {"batch", t.batch},
                     {"tok_s_median", t.tok_s_median},
                     {"tok_s_min", t.tok_s_min},
                     {"tok_s_max", t.tok_s_max},
                     {"tok_s_mean", t.tok_s_mean},
                     {"tok_s_stddev", t.tok_s_stddev},
                     {"fraction_of_limit", t.fraction_of_limit}});
  return {{"verified", r.verified},  {"cpu", r.cpu},
          {"tests", tests},          {"read_bytes_s", r.limits.memory},
          {"flops", r.limits.flops}, {"int8_ops", r.limits.int8_ops}};
}

std::string machine_line(const std::string& name, const CacheSizes& caches) {
  std::string line = name.empty() ? "unnamed CPU" : name;
  for (const auto& [level, bytes] : {std::pair{"L1", caches.l1}, {"L2", caches.l2}, {"L3", caches.l3}})
    if (bytes != 0)
      line += fmt::format(", {} {}", level, bytes >> 20 == 0 ? fmt::format("{} KiB", bytes >> 10) : size(bytes));
  return line;
}

// --limits: measures the machine only.
Result<int> show_limits(const Args& a) {
  const std::string name = cpu_model_name();
  const CacheSizes caches = cache_sizes();
  if (!a.json) fmt::print("{}\n", machine_line(name, caches));
  Json all = Json::array();
  for (int threads : a.bench.threads.empty() ? std::vector<int>{default_threads()} : a.bench.threads) {
    KVASIR_TRY(const Rates limits, measure_rates(threads));
    all.push_back({{"threads", threads},
                   {"read_bytes_s", limits.memory},
                   {"flops", limits.flops},
                   {"int8_ops", limits.int8_ops}});
    if (!a.json) fmt::print("{:>3} threads: {}\n", threads, limits_line(limits));
  }
  if (a.json)
    print_json({{"cpu_name", name},
                {"l1_bytes", caches.l1},
                {"l2_bytes", caches.l2},
                {"l3_bytes", caches.l3},
                {"limits", all}});
  return kOk;
}

Json prefix_json(const PrefixReport& r) {
  return {{"shared", r.shared},
          {"suffix", r.suffix},
          {"ttft_cold_ms", r.ttft_cold_ms},
          {"ttft_hit_ms", r.ttft_hit_ms},
          {"ttft_ratio", r.ttft_ratio()},
          {"ttft_snapshot_ms", r.ttft_snapshot_ms},
          {"snapshot_ratio", r.snapshot_ratio()},
          {"snapshot_bytes", r.snapshot_bytes},
          {"suffix_ms", r.suffix_ms},
          {"tokenise_ms", r.tokenise_ms},
          {"miss_ms", r.miss_ms},
          {"miss_cost", r.miss_cost()}};
}

void print_prefix(const PrefixReport& r) {
  fmt::print("{} tokens seen before, {} new\n\n", r.shared, r.suffix);
  fmt::print("first token, cold            {:>10.2f} ms\n", r.ttft_cold_ms);
  fmt::print("from a snapshot              {:>10.2f} ms   {:.1f} x sooner ({} bytes)\n", r.ttft_snapshot_ms,
             r.snapshot_ratio(), with_commas(r.snapshot_bytes));
  fmt::print("from a kept prefix           {:>10.2f} ms   {:.1f} x sooner\n", r.ttft_hit_ms, r.ttft_ratio());
  fmt::print("the {} new tokens alone      {:>10.2f} ms\n", r.suffix, r.suffix_ms);
  fmt::print("tokenising all of them       {:>10.2f} ms   not included above\n", r.tokenise_ms);
  fmt::print("lookup and keeping, a miss   {:>10.3f} ms   {:.3f} % of the cold first token\n", r.miss_ms,
             100 * r.miss_cost());
}

// --prefix: measures nothing else.
Result<int> show_prefix(const Args& a) {
  if (a.bench.threads.size() > 1)
    return fail(Error::bad_argument, "a list, but --prefix runs with one thread count", "--threads", "--threads 4");
  KVASIR_TRY(const auto model, a.model.open());
  PrefixOptions options;
  options.shared = a.prefix;
  options.threads = a.bench.threads.empty() ? 0 : a.bench.threads.back();
  options.repeats = a.bench.repeats;
  const std::string layout = a.cache_given ? a.bench.session.layout : options.session.layout;
  options.session = a.bench.session;
  options.session.layout = layout;
  KVASIR_TRY(const PrefixReport report, bench_prefix(model, options));
  if (a.json)
    print_json({{"prefix", prefix_json(report)}});
  else
    print_prefix(report);
  if (!a.plot.empty()) KVASIR_CHECK(write_prefix_plot(*model, report, a.plot));
  return kOk;
}

Result<int> show(const Args& a, const ServeReport& report) {
  if (a.json)
    print_json(serve_json(report));
  else
    print_serve(report);
  return kOk;
}

// --serve --url: the model is on another server.
Result<int> show_replay(const Args& a) {
  serve::ReplayOptions options = a.replay;
  KVASIR_TRY(options.trace, read_trace(a.serve));
  KVASIR_TRY(const serve::ReplayResult result, serve::replay(options));
  if (!result.first_failure.empty())
    fmt::print(stderr, "kvasir: a request failed: {}\n", printable(result.first_failure));
  return show(a, result.report);
}

// --serve: measures nothing else.
Result<int> show_serve(const Args& a) {
  if (a.bench.threads.size() > 1)
    return fail(Error::bad_argument, "a list, but --serve runs with one thread count", "--threads", "--threads 4");
  ServeOptions options;
  KVASIR_TRY(options.trace, read_trace(a.serve));
  KVASIR_TRY(const auto model, a.model.open());
  options.engine.threads = a.bench.threads.empty() ? 0 : a.bench.threads.back();
  const std::string layout = a.cache_given ? a.bench.session.layout : options.scheduler.session.layout;
  options.scheduler.session = a.bench.session;
  options.scheduler.session.layout = layout;
  options.scheduler.max_sequences = a.max_sequences;
  options.scheduler.step_ms = a.step_ms;
  options.scheduler.draft_tokens = a.draft_tokens;
  if (!a.draft.empty()) {
    KVASIR_TRY(options.scheduler.draft, Model::open(a.draft, a.model.options));
  }
  KVASIR_TRY(const ServeReport report, bench_serve(model, options));
  return show(a, report);
}

Result<int> run(Args a) {
  if (a.limits) return show_limits(a);
  if (!a.replay.url.empty()) return show_replay(a);
  if (!a.serve.empty()) return show_serve(a);
  if (a.prefix > 0) return show_prefix(a);
  KVASIR_TRY(const auto model, a.model.open());
  const bool terminal = isatty(STDERR_FILENO) != 0;
  if (terminal) a.bench.progress = [](const std::string& what) { fmt::print(stderr, "\r\033[K{}", what); };
  const auto report = bench(model, a.bench);
  if (terminal) fmt::print(stderr, "\r\033[K");
  if (!report) return tl::unexpected<Error>(report.error());
  if (a.json)
    print_json(bench_json(*report));
  else
    print_table(model->info(), *report, a.bench.repeats);
  if (a.plot.empty()) return kOk;
  KVASIR_CHECK(
      write_plots(model, a.bench, a.bench.threads.empty() ? default_threads() : a.bench.threads.back(), a.plot));
  if (terminal) fmt::print(stderr, "\r\033[K");
  if (!a.json) fmt::print("plots and CSV are in {}\n", a.plot);
  return kOk;
}

void add(Flags& flags, Run* run_command) {
  auto a = std::make_shared<Args>();
  a->model.add(flags, flag::kBenchTokenizer);
  flags.bind(flag::kBenchPrompt, &a->bench.prompt);
  flags.bind(flag::kBenchGenerate, &a->bench.generate);
  flags.bind(flag::kDepth, &a->bench.depth);
  flags.bind(flag::kBenchBatch, &a->bench.batch);
  flags.bind(flag::kRepeats, &a->bench.repeats);
  flags.bind(flag::kThreadsList, &a->bench.threads);
  flags.bind(flag::kCache, &a->bench.session.layout);
  flags.bind(flag::kCtx, &a->bench.session.ctx);
  add_kv_types(flags, a->bench.session);
  flags.bind(flag::kPlot, &a->plot);
  flags.bind(flag::kPrefix, &a->prefix);
  flags.bind(flag::kServe, &a->serve);
  flags.bind(flag::kUrl, &a->replay.url);
  flags.bind(flag::kServedModel, &a->replay.model);
  flags.bind(flag::kVocab, &a->replay.vocab);
  flags.bind(flag::kMaxSequences, &a->max_sequences);
  flags.bind(flag::kStepMs, &a->step_ms);
  flags.bind(flag::kDraft, &a->draft);
  flags.bind(flag::kDraftTokens, &a->draft_tokens);
  flags.bind(flag::kLimits, &a->limits);
  flags.bind(flag::kJson, &a->json);
  flags.footer(
      "Runs a 16-step verification first and shows no speed if it fails.\n\n"
      "Tests are named as llama-bench names them: tg128; tg128x8 with a batch of 8; tg128x8@d512 with 512 tokens "
      "before.\n\n"
      "Examples:\n  kvasir bench tales -p 256 -n 64 -t 1,2\n  kvasir bench tales -p 64 -n 32 -b 8\n  kvasir bench "
      "tales -p 64 -n 32 -d 512 --json\n"
      "  kvasir bench tales -p 256 -n 64 --plot plots\n  kvasir bench --limits\n  kvasir bench tales --prefix 800\n"
      "  kvasir bench tales --serve TRACE.jsonl\n"
      "  kvasir bench --serve TRACE.jsonl --url http://127.0.0.1:8080");
  *run_command = [a, &flags] {
    a->cache_given = flags.given(flag::kCache);
    return run(*a);
  };
}

}  // namespace

extern const Command cmd_bench;
const Command cmd_bench{"bench", "measure prefill and decode speed, verified first; plots", add};

}  // namespace kvasir::cli
