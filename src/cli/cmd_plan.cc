// kvasir plan: predicts the memory and the speed limit of a run.
#include <cstdio>
#include <optional>

#include <fmt/format.h>

#include <kvasir/catalog.h>
#include <kvasir/plan.h>

#include "base/system.h"
#include "cli/cli.h"

namespace kvasir::cli {
namespace {

struct Args {
  PlanRequest request;
  std::string ram, kv_ram;
  bool explain = false, json = false;
};

void print_ram(const PlanReport& r, const Rates& rates, const Args& a) {
  fmt::print("in {:<15} code {}, tokenizer {}, activations {} ({} tokens a pass, {} threads)\n", a.ram + " of memory",
             with_commas(r.process_bytes), with_commas(r.tokenizer_bytes), with_commas(r.activation_bytes),
             r.prefill_chunk, a.request.threads);
  for (const WeightChoice& c : r.choices) {
    fmt::print("  {:<8} weights  {} B, ", weights_mode_name(c.mode), with_commas(c.weights_bytes));
    if (c.left == 0) {
      fmt::print("which does not fit\n");
      continue;
    }
    const auto speed = decode_limit(c, r, rates);
    fmt::print("{} B left: {} positions for one, {} sequences of {}{}{}\n", with_commas(c.left), c.positions, c.users,
               r.chat,
               speed ? fmt::format(", at most {:.1f} tok/s{}", *speed, c.disk_bytes > 0 ? " from the disk" : "") : "",
               c.mode == r.weights_mode ? "  <- chosen" : "");
    if (c.kept_bytes > 0)
      fmt::print("           beside one sequence of {}, {} B more are kept and {} B read for a token\n", r.chat,
                 with_commas(c.kept_bytes), with_commas(c.disk_bytes));
  }
  if (!r.weights_mode) {
    fmt::print("  nothing fits: a larger --ram\n");
    return;
  }
  fmt::print("  then, by KV type (K and V)\n");
  for (const KvChoice& k : r.kv_types)
    fmt::print("    {:<5} {:>9} B a token: {} positions for one, {} sequences of {}\n", k.kv_type,
               with_commas(k.bytes_per_token), k.positions, k.users, r.chat);
  if (rates.disk)
    fmt::print("  disk {:.2f} GB/s, memory {:.1f} GB/s, measured now\n", *rates.disk / 1e9, rates.memory / 1e9);
}

void print_plan(const PlanReport& r, const Rates& rates, const Args& a) {
  fmt::print("model              {} ({}, {} layers, {} heads, {} KV heads of {})\n", r.model, r.family, r.layers,
             r.heads, r.kv_heads, r.head_dim);
  fmt::print("weights            {} B\n", with_commas(r.weights_bytes));
  if (r.experts > 0)
    fmt::print("active weights     {} B a token, which uses {} of {} experts\n", with_commas(r.active_weights_bytes),
               r.experts_used, r.experts);
  fmt::print("KV a token         {} B (K {}, V {})\n", with_commas(r.kv_bytes_per_token), r.kv_type_k, r.kv_type_v);
  fmt::print("KV a sequence      {} B for {} positions, layout {}, peak {} B\n", with_commas(r.kv_bytes), r.chat,
             r.layout, with_commas(r.kv_peak_bytes));
  if (r.choices.empty())
    fmt::print("activations        {} B for passes of {} tokens on {} threads\n", with_commas(r.activation_bytes),
               r.prefill_chunk, a.request.threads);
  if (!r.choices.empty())
    print_ram(r, rates, a);
  else if (r.users_that_fit >= 0)
    fmt::print("sequences at once  {} in {} of KV\n", r.users_that_fit, a.kv_ram);
  fmt::print("decode limit       {:.1f} tok/s: {} B read a token at this machine's memory bandwidth\n",
             decode_limit(r, rates), with_commas(r.read_bytes_per_token));
  if (a.explain)
    for (const std::string& line : r.explanation) fmt::print("  {}\n", line);
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json ram_json(const PlanReport& r, const Rates& rates) {
  Json modes = Json::array(), types = Json::array();
  for (const WeightChoice& c : r.choices)
    modes.push_back({{"mode", weights_mode_name(c.mode)},
                     {"weights_bytes", c.weights_bytes},
                     {"left_bytes", c.left},
                     {"kept_bytes", c.kept_bytes},
                     {"disk_bytes", c.disk_bytes},
                     {"positions", c.positions},
                     {"users", c.users},
                     {"limit_decode_tok_s", or_null(decode_limit(c, r, rates))}});
  for (const KvChoice& k : r.kv_types)
    types.push_back({{"kv_type", k.kv_type},
                     {"kv_bytes_per_token", k.bytes_per_token},
                     {"positions", k.positions},
                     {"users", k.users}});
  return {{"process_bytes", r.process_bytes},
          {"tokenizer_bytes", r.tokenizer_bytes},
          {"activation_bytes", r.activation_bytes},
          {"prefill_chunk", r.prefill_chunk},
          {"weights_mode", r.weights_mode ? weights_mode_name(*r.weights_mode) : ""},
          {"disk_bytes_s", or_null(rates.disk)},
          {"modes", modes},
          {"kv_types", types}};
}

Json plan_json(const PlanReport& r, const Rates& rates, const Args& a) {
  return {{"model", r.model},
          {"kv_bytes_per_token", r.kv_bytes_per_token},
          {"kv_bytes", r.kv_bytes},
          {"kv_peak_bytes", r.kv_peak_bytes},
          {"weights_bytes", r.weights_bytes},
          {"active_weights_bytes", r.active_weights_bytes},
          {"experts", r.experts},
          {"experts_used", r.experts_used},
          {"ctx", r.ctx},
          {"chat", r.chat},
          {"kv_type_k", r.kv_type_k},
          {"kv_type_v", r.kv_type_v},
          {"layout", r.layout},
          {"activation_bytes", r.activation_bytes},
          {"prefill_chunk", r.prefill_chunk},
          {"threads", a.request.threads},
          {"users_that_fit", r.users_that_fit < 0 ? Json() : Json(r.users_that_fit)},
          {"limit_decode_tok_s", decode_limit(r, rates)},
          {"explanation", a.explain ? Json(r.explanation) : Json()},
          {"ram", r.choices.empty() ? Json() : ram_json(r, rates)}};
}

Result<int> run(Args a) {
  if (a.request.threads == 0) a.request.threads = default_threads();
  KVASIR_TRY(const PlanReport report, plan(a.request));
  print_note(report.ignored);
  KVASIR_TRY(const Rates rates, measure_rates(a.request.threads, report.files.empty() ? "" : report.files.front()));
  if (a.json)
    print_json(plan_json(report, rates, a));
  else
    print_plan(report, rates, a);
  return kOk;
}

void add(Flags& flags, Run* run_command) {
  auto a = std::make_shared<Args>();
  flags.bind(flag::kPlanModel, &a->request.model);
  flags.bind(flag::kCache, &a->request.session.layout);
  flags.bind(flag::kCtx, &a->request.session.ctx);
  flags.bind(flag::kChat, &a->request.chat);
  add_kv_types(flags, a->request.session);
  add_window(flags, a->request.session);
  flags.bind(flag::kPlanDtype, &a->request.dtype);
  flags.bind(flag::kPlanRam, &a->request.ram);
  flags.bind(flag::kPlanKvRam, &a->request.kv_ram);
  flags.bind(flag::kPlanThreads, &a->request.threads);
  flags.bind(with_help(flag::kPrefillChunk, "maximum number of tokens in one pass"), &a->request.prefill_chunk);
  flags.bind(flag::kExplain, &a->explain);
  flags.bind(flag::kJson, &a->json);
  std::string list = "Layouts:\n";
  for (const auto& layout : catalog::layouts())
    list += fmt::format("  {:<8} {}\n           {}\n", layout.name, layout.summary, layout.trade);
  flags.footer(list +
               "\nExamples:\n  kvasir plan tales --ctx 512 --explain\n  kvasir plan config.json --cache dense --kv-ram "
               "512M --chat 1024\n  kvasir plan model.gguf --ram 300M --chat 1024");
  *run_command = [a, &flags] {
    a->ram = flags.text(flag::kPlanRam);
    a->kv_ram = flags.text(flag::kPlanKvRam);
    return run(*a);
  };
}

}  // namespace

extern const Command cmd_plan;
const Command cmd_plan{"plan", "predict bytes per token and sequence, what fits, the speed that memory allows", add};

}  // namespace kvasir::cli
