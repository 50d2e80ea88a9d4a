// kvasir bench: speeds, after a verification.
#include <unistd.h>

#include <cstdio>

#include <fmt/format.h>

#include "base/system.h"
#include "cli/cli.h"
#include "cli/plot.h"

namespace kvasir::cli {
namespace {

struct Args {
  ModelArgs model;
  BenchOptions bench;
  std::string plot;
  bool json = false;
};

std::string parameters(int64_t n) {
  const double millions = static_cast<double>(n) / 1e6;
  return millions >= 1000 ? fmt::format("{:.2f} B", millions / 1000) : fmt::format("{:.2f} M", millions);
}

// llama-bench's columns, and the fraction of what this machine allows.
void print_table(const ModelInfo& m, const BenchReport& r) {
  const double mib = static_cast<double>(m.weights_bytes) / (1024.0 * 1024.0);
  fmt::print("| {:<24} | {:>10} | {:>9} | {:>7} | {:>14} | {:>20} | {:>8} |\n", "model", "size", "params", "threads",
             "test", "t/s", "of limit");
  fmt::print("| {:-<24} | {:->10} | {:->9} | {:->7} | {:->14} | {:->20} | {:->8} |\n", "", ":", ":", ":", ":", ":",
             ":");
  for (const BenchTest& t : r.tests)
    fmt::print("| {:<24} | {:>6.1f} MiB | {:>9} | {:>7} | {:>14} | {:>20} | {:>6.0f} % |\n",
               m.name + " " + m.weight_type, mib, parameters(m.parameters), t.threads, t.name,
               fmt::format("{:.1f} ({:.1f}..{:.1f})", t.tok_s_median, t.tok_s_min, t.tok_s_max),
               100 * t.fraction_of_limit);
  fmt::print("verified; limits measured here: {:.1f} GB/s read, {:.0f} GFLOP/s f32 FMA\n", r.read_bytes_s / 1e9,
             r.flops / 1e9);
}

nlohmann::json bench_json(const BenchReport& r) {
  nlohmann::json tests = nlohmann::json::array();
  for (const BenchTest& t : r.tests)
    tests.push_back({{"name", t.name},
                     {"threads", t.threads},
                     {"tok_s_median", t.tok_s_median},
                     {"tok_s_min", t.tok_s_min},
                     {"tok_s_max", t.tok_s_max},
                     {"fraction_of_limit", t.fraction_of_limit}});
  return {{"verified", r.verified}, {"tests", tests}, {"read_bytes_s", r.read_bytes_s}, {"flops", r.flops}};
}

Result<int> run(Args a) {
  KVASIR_TRY(const auto model, a.model.open());
  const bool terminal = isatty(STDERR_FILENO) != 0;
  if (terminal) a.bench.progress = [](const std::string& what) { fmt::print(stderr, "\r\033[K{}", what); };
  const auto report = bench(model, a.bench);
  if (terminal) fmt::print(stderr, "\r\033[K");
  if (!report) return tl::unexpected<Error>(report.error());
  if (a.json)
    print_json(bench_json(*report));
  else
    print_table(model->info(), *report);
  if (a.plot.empty()) return kOk;
  KVASIR_CHECK(
      write_plots(model, a.bench, a.bench.threads.empty() ? default_threads() : a.bench.threads.back(), a.plot));
  if (terminal) fmt::print(stderr, "\r\033[K");
  if (!a.json) fmt::print("plots and CSV are in {}\n", a.plot);
  return kOk;
}

void add(CLI::App& app, Run* run_command) {
  auto a = std::make_shared<Args>();
  a->model.add(app);
  app.add_option("-p,--prompt", a->bench.prompt, "tokens of the prefill test; 0: none")->capture_default_str();
  app.add_option("-n,--predict", a->bench.generate, "tokens of the decode test; 0: none")->capture_default_str();
  app.add_option("-d,--depth", a->bench.depth, "positions filled before")->capture_default_str();
  app.add_option("-r,--repeats", a->bench.repeats, "how often each is measured")->capture_default_str();
  app.add_option("-t,--threads", a->bench.threads, "thread counts")->delimiter(',');
  app.add_option("--cache", a->bench.session.layout, "cache layout")->capture_default_str();
  app.add_option("-c,--ctx", a->bench.session.ctx, "the most positions; 0: the model's limit");
  add_kv_types(app, a->bench.session);
  app.add_option("--plot", a->plot, "measure step by step too, and write SVG and CSV into this folder");
  app.add_flag("--json", a->json, "one JSON object on stdout");
  app.footer(
      "Runs a 16-step verification first and shows no speed if it fails.\n\n"
      "Examples:\n  kvasir bench tales -p 256 -n 64 -t 1,2\n  kvasir bench tales -p 256 -n 64 --plot plots");
  *run_command = [a] { return run(*a); };
}

}  // namespace

extern const Command cmd_bench;
const Command cmd_bench{"bench", "prefill and decode speed, verified first; plots", add};

}  // namespace kvasir::cli
