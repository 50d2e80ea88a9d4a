// kvasir verify: proves on a model that the cache changes no bit.
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include <kvasir/verify.h>

#include "cli/cli.h"

namespace kvasir::cli {
namespace {

struct Args {
  ModelArgs model;
  VerifyOptions verify;
  std::string prompts, cache;
  int count = 20;
  bool json = false, cases = false;
};

Result<std::vector<std::vector<int>>> prompt_ids(const Args& a, const Model& model) {
  std::string path = a.prompts;
  if (path.empty()) {
    KVASIR_TRY(path, find_model("prompts.txt"));
  }
  KVASIR_TRY(auto lines, read_prompts(path));
  std::vector<std::vector<int>> prompts;
  if (lines.size() > static_cast<size_t>(a.count)) lines.resize(static_cast<size_t>(a.count));
  for (const std::string& line : lines) {
    KVASIR_TRY(auto ids, encode(model, line));
    prompts.push_back(std::move(ids));
  }
  return prompts;
}

// The table row of a case: one row per KV type, window and act; other cases have one row per layout.
std::string row_of(const VerifyCase& c) {
  if (!c.kv_type.empty()) return fmt::format("kv={}", c.kv_type);
  if (c.window > 0) return fmt::format("window={}+{}", c.window, c.sinks);
  return c.act.empty() ? c.layout : c.act;
}

struct Row {
  std::string name;
  size_t cases = 0, compared_logits = 0, differing_logit_bits = 0;
  int differing_tokens = 0;
};

std::vector<Row> rows_of(const VerifyReport& r, bool every_case) {
  std::vector<Row> rows;
  for (const VerifyCase& c : r.cases) {
    const std::string name = every_case ? c.name() : row_of(c);
    auto row = std::find_if(rows.begin(), rows.end(), [&](const Row& known) { return known.name == name; });
    if (row == rows.end()) row = rows.insert(rows.end(), Row{.name = name});
    row->compared_logits += c.compared_logits;
    row->differing_logit_bits += c.differing_logit_bits;
    row->differing_tokens += c.differing_tokens;
    ++row->cases;
  }
  return rows;
}

void print_table(const VerifyReport& r, bool every_case) {
  const std::vector<Row> rows = rows_of(r, every_case);
  size_t width = 10;
  for (const Row& row : rows) width = std::max(width, row.name.size());
  fmt::print("{:<{}} {:>6} {:>16} {:>15} {:>17}\n", "", width, "cases", "compared logits", "differing bits",
             "differing tokens");
  for (const Row& row : rows)
    fmt::print("{:<{}} {:>6} {:>16} {:>15} {:>17}\n", row.name, width, row.cases, with_commas(row.compared_logits),
               row.differing_logit_bits, row.differing_tokens);
  fmt::print("{}: {} prompts, {} tokens, {} differing tokens, {} differing logit bits over {} cases\n",
             r.pass ? "PASS" : "FAIL", r.prompts, r.tokens, r.differing_tokens, r.differing_logit_bits, r.cases.size());
}

Json verify_json(const VerifyReport& r) {
  Json cases = Json::array();
  for (const VerifyCase& c : r.cases)
    cases.push_back({{"name", c.name()},
                     {"layout", c.layout},
                     {"threads", c.threads},
                     {"chunk", c.chunk},
                     {"batch", c.batch},
                     {"act", c.act},
                     {"kv_type", c.kv_type},
                     {"window", c.window},
                     {"sinks", c.sinks},
                     {"compared_logits", c.compared_logits},
                     {"differing_logit_bits", c.differing_logit_bits},
                     {"differing_tokens", c.differing_tokens}});
  return {{"pass", r.pass},
          {"prompts", r.prompts},
          {"tokens", r.tokens},
          {"differing_tokens", r.differing_tokens},
          {"differing_logit_bits", r.differing_logit_bits},
          {"cases", cases}};
}

Result<int> run(Args a) {
  KVASIR_TRY(const auto model, a.model.open());
  KVASIR_TRY(a.verify.prompts, prompt_ids(a, *model));
  if (!a.cache.empty()) a.verify.layouts = {a.cache};
  const bool terminal = isatty(STDERR_FILENO) != 0;
  if (terminal)
    a.verify.progress = [](size_t done, size_t total, const std::string& name) {
      fmt::print(stderr, "\r\033[K{}/{} {}", done, total, name);
    };
  const auto report = verify(model, a.verify);
  if (terminal) fmt::print(stderr, "\r\033[K");
  if (!report) return tl::unexpected<Error>(report.error());
  if (a.json)
    print_json(verify_json(*report));
  else
    print_table(*report, a.cases);
  return report->pass ? kOk : kCheckFailed;
}

void add(Flags& flags, Run* run_command) {
  auto a = std::make_shared<Args>();
  a->model.add(flags);
  flags.bind(flag::kVerifyPrompts, &a->prompts);
  flags.bind(flag::kCount, &a->count);
  flags.bind(flag::kVerifyTokens, &a->verify.new_tokens);
  flags.bind(flag::kOnlyCache, &a->cache);
  flags.bind(flag::kThreadsList, &a->verify.threads);
  flags.bind(flag::kChunkList, &a->verify.chunks);
  flags.bind(flag::kBatchList, &a->verify.batches);
  flags.bind(flag::kCtx, &a->verify.session.ctx);
  add_kv_types(flags, a->verify.session);
  add_window(flags, a->verify.session);
  flags.bind(flag::kCases, &a->cases);
  flags.bind(flag::kJson, &a->json);
  flags.footer(
      "Every layout, thread count, prefill chunk and batch size generates the same prompts; every logit must equal,\n"
      "bit for bit, the one from recomputing everything at each step. A few prompts also go through random batches,\n"
      "forks, truncations, reused prefixes, snapshots and drafted tokens (lookup), and a tenth of them is run with\n"
      "every other KV type and with a window and sinks, in every layout. Exit 0: PASS, 1: FAIL.\n\n"
      "Examples:\n  kvasir verify tales --count 4 -n 32\n  kvasir verify tales-gpt2 --cache grow --threads 1,2 --json");
  *run_command = [a] { return run(*a); };
}

}  // namespace

extern const Command cmd_verify;
const Command cmd_verify{"verify", "prove that the cache changes nothing on this model", add};

}  // namespace kvasir::cli
