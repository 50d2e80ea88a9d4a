// kvasir drift: measures what a narrow KV type costs against f32.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include <fmt/format.h>

#include "cli/cli.h"
#include "cli/plot.h"
#include "cli/progress.h"
#include "lab/drift.h"

namespace kvasir::cli {
namespace {

struct Args {
  ModelArgs model;
  EngineArgs engine;
  std::string file, csv, svg;
  std::vector<std::string> types;
  int chunks = 0;
  bool json = false;
};

constexpr const char* kLine = "{:<6} {:<6} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>11} {:>10} {:>10}\n";

void print_row(const DriftRow& r) {
  fmt::print(kLine, r.kv_type_k, r.kv_type_v, with_commas(r.kv_bytes_per_token),
             fmt::format("{:.3g}", r.max_delta_logit), fmt::format("{:.3g}", r.mean_delta_logit),
             fmt::format("{:.2e}", r.mean_kl), fmt::format("{:.2e}", r.max_kl),
             fmt::format("{:.2f} %", 100 * r.top1_agreement), fmt::format("{:.4f}", r.perplexity),
             fmt::format("{:+.3f} %", 100 * r.perplexity_change), with_commas(static_cast<uint64_t>(r.saturated)));
}

void print_report(const DriftReport& r) {
  fmt::print(kLine, "K", "V", "B/token", "max |Δ|", "mean |Δ|", "mean KL", "max KL", "top-1", "perplexity", "change",
             "saturated");
  fmt::print(kLine, "f32", "f32", with_commas(r.kv_bytes_per_token_f32), "-", "-", "-", "-", "-",
             fmt::format("{:.4f}", r.perplexity_f32), "-", "-");
  for (const DriftRow& row : r.rows) print_row(row);
  fmt::print("{} tokens scored in {} windows of {}; the text has {}; {:.1f} s\n",
             with_commas(static_cast<uint64_t>(r.scored)), r.windows, r.window,
             with_commas(static_cast<uint64_t>(r.tokens)), r.seconds);
}

Json row_json(const DriftRow& r) {
  return {{"kv_type_k", r.kv_type_k},
          {"kv_type_v", r.kv_type_v},
          {"kv_bytes_per_token", r.kv_bytes_per_token},
          {"max_delta_logit", r.max_delta_logit},
          {"mean_delta_logit", r.mean_delta_logit},
          {"mean_kl", r.mean_kl},
          {"max_kl", r.max_kl},
          {"top1_agreement", r.top1_agreement},
          {"perplexity", r.perplexity},
          {"perplexity_change", r.perplexity_change},
          {"saturated", r.saturated}};
}

Json report_json(const DriftReport& r, const Engine& engine, const SessionOptions& session) {
  Json rows = Json::array();
  for (const DriftRow& row : r.rows) rows.push_back(row_json(row));
  return {{"model", engine.model().info().name},
          {"tokens", r.tokens},
          {"scored", r.scored},
          {"ctx", r.window},
          {"windows", r.windows},
          {"layout", session.layout},
          {"window", session.window},
          {"sinks", session.window == 0 ? 0 : session.sinks.value_or(kDefaultSinks)},
          {"seconds", r.seconds},
          {"threads", engine.threads()},
          {"kv_bytes_per_token_f32", r.kv_bytes_per_token_f32},
          {"perplexity_f32", r.perplexity_f32},
          {"rows", rows}};
}

std::string row_csv(const DriftRow& r) {
  return fmt::format("{},{},{},{},{},{},{},{},{},{},{}", r.kv_type_k, r.kv_type_v, r.kv_bytes_per_token,
                     r.max_delta_logit, r.mean_delta_logit, r.mean_kl, r.max_kl, r.top1_agreement, r.perplexity,
                     r.perplexity_change, r.saturated);
}

Result<void> write_table(const std::string& path, const std::string& title, const DriftReport& r) {
  DriftRow reference;
  reference.kv_type_k = reference.kv_type_v = "f32";
  reference.kv_bytes_per_token = r.kv_bytes_per_token_f32;
  reference.top1_agreement = 1;
  reference.perplexity = r.perplexity_f32;
  std::vector<std::string> rows{row_csv(reference)};
  for (const DriftRow& row : r.rows) rows.push_back(row_csv(row));
  return write_csv(path, title,
                   "kv_type_k,kv_type_v,kv_bytes_per_token,max_delta_logit,mean_delta_logit,mean_kl,max_kl,"
                   "top1_agreement,perplexity,perplexity_change,saturated",
                   rows);
}

// The range of whole decades around all values that a logarithmic axis can show.
std::string decades(const std::vector<DriftRow>& rows) {
  double low = HUGE_VAL, high = 0;
  for (const DriftRow& row : rows) {
    if (!(row.mean_kl > 0) || std::isinf(row.mean_kl)) continue;
    low = std::min(low, row.mean_kl);
    high = std::max(high, row.mean_kl);
  }
  if (high == 0) return "[1e-9:1]";
  return fmt::format("[1e{:.0f}:1e{:.0f}]", std::floor(std::log10(low)) - 1, std::floor(std::log10(high)) + 1);
}

// One group of bars per type: K and V, K alone, V alone, in the order of drift_candidates().
Result<void> draw(const std::string& file, const std::string& title, const std::vector<DriftRow>& rows) {
  const std::filesystem::path path = file;
  std::string groups;
  for (size_t i = 0; i + 2 < rows.size(); i += 3)
    groups += fmt::format("\"{}\\n{} B\",{},{},{}\n", rows[i].kv_type_k, rows[i].kv_bytes_per_token, rows[i].mean_kl,
                          rows[i + 1].mean_kl, rows[i + 2].mean_kl);
  const std::string folder = path.parent_path().string();
  return gnuplot(folder.empty() ? "." : folder,
                 fmt::format("set output {}\nset title {}\n$groups << END\n{}END\n"
                             "set logscale y\nset yrange {}\nset format y '%.0e'\nset grid noxtics\n"
                             "set ylabel 'mean KL(f32 || type), nats'\nset bmargin 5\nset key outside right\n"
                             "set xlabel 'KV type, and bytes a token with both K and V in it' offset 0,-0.8\n"
                             "set style data histograms\nset style histogram clustered gap 1\nset style fill solid\n"
                             "plot [-0.7:{:.1f}] $groups using 2:xtic(1) lc rgb '#444444' title 'K and V', "
                             "'' using 3 lc rgb '#0072b2' title 'K alone', "
                             "'' using 4 lc rgb '#e69f00' title 'V alone'\n",
                             quoted(path.filename().string()), quoted(title), groups, decades(rows),
                             static_cast<double>(rows.size() / 3) - 0.3));
}

Result<DriftOptions> options_of(const Args& a) {
  DriftOptions options;
  KVASIR_TRY(options.candidates, drift_candidates(a.types));
  options.session = a.engine.session;
  options.windows = a.chunks;
  return options;
}

Result<int> run(const Args& a) {
  KVASIR_TRY(DriftOptions options, options_of(a));
  KVASIR_TRY(const std::string text, read_text_file(a.file));
  KVASIR_TRY(const auto model, a.model.open());
  KVASIR_TRY(const auto ids, encode(*model, text));
  KVASIR_TRY(const auto engine, Engine::create(model, a.engine.engine));
  options.progress = window_bar();
  const auto report = drift(*engine, ids, model->tokenizer()->bos(), options);
  clear_bar();
  if (!report) return tl::unexpected<Error>(report.error());
  if (a.json)
    print_json(report_json(*report, *engine, options.session));
  else
    print_report(*report);
  const std::string title = fmt::format("KV drift of {} over {} tokens ({})", model->info().name,
                                        with_commas(static_cast<uint64_t>(report->scored)), provenance());
  if (!a.csv.empty()) KVASIR_CHECK(write_table(a.csv, title, *report));
  if (!a.svg.empty()) KVASIR_CHECK(draw(a.svg, title, report->rows));
  return kOk;
}

void add(Flags& flags, Run* run_command) {
  auto a = std::make_shared<Args>();
  a->engine.session.ctx = 512;
  a->model.add(flags);
  a->engine.add(flags, flag::kWindowTokens);
  flags.bind(flag::kTextFile, &a->file);
  flags.bind(flag::kDriftTypes, &a->types);
  flags.bind(flag::kChunks, &a->chunks);
  flags.bind(flag::kCsv, &a->csv);
  flags.bind(flag::kSvg, &a->svg);
  flags.bind(flag::kJson, &a->json);
  flags.footer(
      "Reads the text once with K and V in f32 and once with each type, for both, for K alone and for V alone, and\n"
      "compares the logits of the tokens that `kvasir perplexity` scores: the second half of every window.\n\n"
      "Columns:\n"
      "  B/token     bytes of K and V for one token, in all layers\n"
      "  max |Δ|     the largest difference of any logit from that of f32; mean |Δ|: of all logits\n"
      "  mean KL     KL(f32 || type) of the next token's probabilities, in nats; max KL: of the worst position\n"
      "  top-1       share of positions at which the most likely token is the same\n"
      "  change      of the perplexity, against that of f32\n"
      "  saturated   values that the type could not hold (f16: beyond 65,504), scales of blocks for q8_0 and q4_0\n\n"
      "Examples:\n  kvasir drift tales --file story.txt\n"
      "  kvasir drift model.gguf -f wiki.test.raw --chunks 8 --types f16,q8_0 --csv drift.csv --svg drift.svg\n"
      "  kvasir drift tales -f story.txt --ctx 256 --window 64 --json");
  *run_command = [a] { return run(*a); };
}

}  // namespace

extern const Command cmd_drift;
const Command cmd_drift{"drift", "measure what a narrow KV type costs against f32", add};

}  // namespace kvasir::cli
