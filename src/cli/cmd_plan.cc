// kvasir plan: what a run will take, before it starts.
#include <cstdio>

#include <fmt/format.h>

#include <kvasir/plan.h>

#include "base/system.h"
#include "cache/layout.h"
#include "cli/cli.h"

namespace kvasir::cli {
namespace {

struct Args {
  PlanRequest request;
  std::string ram, kv_ram;
  int threads = 0;
  bool explain = false, json = false;
};

void print_plan(const PlanReport& r, double limit, const Args& a) {
  fmt::print("model              {} ({}, {} layers, {} heads, {} KV heads of {})\n", r.model, r.family, r.layers,
             r.heads, r.kv_heads, r.head_dim);
  fmt::print("weights            {} B\n", with_commas(r.weights_bytes));
  fmt::print("KV a token         {} B (K {}, V {})\n", with_commas(r.kv_bytes_per_token), r.kv_type_k, r.kv_type_v);
  fmt::print("KV a sequence      {} B for {} positions, layout {}, at the most {} B on the way\n",
             with_commas(r.kv_bytes), r.chat, r.layout, with_commas(r.kv_peak_bytes));
  if (r.users_that_fit >= 0)
    fmt::print("sequences at once  {} in {}\n", r.users_that_fit,
               a.kv_ram.empty() ? a.ram + " (whole run)" : a.kv_ram + " of KV");
  fmt::print("decode limit       {:.1f} tok/s: {} B read a token at this machine's memory bandwidth\n", limit,
             with_commas(r.read_bytes_per_token));
  if (a.explain)
    for (const std::string& line : r.explanation) fmt::print("  {}\n", line);
}

nlohmann::json plan_json(const PlanReport& r, double limit) {
  return {{"model", r.model},
          {"kv_bytes_per_token", r.kv_bytes_per_token},
          {"kv_bytes", r.kv_bytes},
          {"kv_peak_bytes", r.kv_peak_bytes},
          {"weights_bytes", r.weights_bytes},
          {"ctx", r.ctx},
          {"chat", r.chat},
          {"kv_type_k", r.kv_type_k},
          {"kv_type_v", r.kv_type_v},
          {"layout", r.layout},
          {"users_that_fit", r.users_that_fit < 0 ? nlohmann::json() : nlohmann::json(r.users_that_fit)},
          {"limit_decode_tok_s", limit}};
}

Result<int> run(Args a) {
  if (!a.ram.empty()) {
    KVASIR_TRY(a.request.ram, parse_bytes(a.ram, "--ram"));
  }
  if (!a.kv_ram.empty()) {
    KVASIR_TRY(a.request.kv_ram, parse_bytes(a.kv_ram, "--kv-ram"));
  }
  KVASIR_TRY(const PlanReport report, plan(a.request));
  KVASIR_TRY(const double bandwidth, measure_read_bandwidth(a.threads == 0 ? default_threads() : a.threads));
  const double limit = bandwidth / static_cast<double>(report.read_bytes_per_token);
  if (a.json)
    print_json(plan_json(report, limit));
  else
    print_plan(report, limit, a);
  return kOk;
}

void add(CLI::App& app, Run* run_command) {
  auto a = std::make_shared<Args>();
  app.add_option("MODEL,-m,--model", a->request.model, "a model, or a bare config.json")->capture_default_str();
  app.add_option("--cache", a->request.session.layout, "cache layout")->capture_default_str();
  app.add_option("-c,--ctx", a->request.session.ctx, "the most positions; 0: the model's limit");
  app.add_option("--chat", a->request.chat, "positions that a sequence uses; 0: all of --ctx");
  add_kv_types(app, a->request.session);
  app.add_option("--dtype", a->request.dtype, "weight type, for a bare config.json");
  app.add_option("--ram", a->ram, "bytes for the whole run: 512M, 8G");
  app.add_option("--kv-ram", a->kv_ram, "bytes for the cache alone");
  app.add_option("-t,--threads", a->threads, "threads that read memory; 0: as many as this process may use cores");
  app.add_flag("--explain", a->explain, "the multiplications");
  app.add_flag("--json", a->json, "one JSON object on stdout");
  std::string list = "Layouts:\n";
  for (const LayoutInfo* info : layouts())
    list += fmt::format("  {:<8} {}\n           {}\n", info->name, info->summary, info->trade);
  app.footer(list +
             "\nExamples:\n  kvasir plan tales --ctx 512 --explain\n  kvasir plan config.json --cache dense --kv-ram "
             "512M --chat 1024");
  *run_command = [a] { return run(*a); };
}

}  // namespace

extern const Command cmd_plan;
const Command cmd_plan{"plan", "bytes per token and sequence, what fits, how fast memory allows", add};

}  // namespace kvasir::cli
