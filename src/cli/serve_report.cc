// The table of times, and the scheduler's counters.
#include "cli/serve_report.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "cli/cli.h"

namespace kvasir::cli {
namespace {

Json percentiles_json(const Percentiles& p) {
  return {{"p50", p.p50}, {"p95", p.p95}, {"p99", p.p99}, {"most", p.most}};
}

void print_times(const char* what, const Percentiles& p) {
  fmt::print("{:<22} {:>10.1f} {:>10.1f} {:>10.1f} {:>10.1f} ms\n", what, p.p50 * 1e3, p.p95 * 1e3, p.p99 * 1e3,
             p.most * 1e3);
}

// The value, or null if it is unknown.
template <class T>
Json if_known(bool known, const T& value) {
  return known ? Json(value) : Json();
}

void print_passes(const ServeReport& r) {
  const SchedulerStats& s = r.stats;
  fmt::print("passes         {} of {:.1f} tokens; their times were predicted within {:.1f} %\n", s.passes,
             static_cast<double>(s.pass_tokens) / static_cast<double>(std::max<int64_t>(1, s.passes)),
             s.pass_s > 0 ? 100 * std::abs(s.predicted_s / s.pass_s - 1) : 0.0);
  if (s.guessed > 0) fmt::print("guesses        {} of {} accepted\n", s.accepted, s.guessed);
  fmt::print("memory         {} bytes of KV at most, {} in all\n", with_commas(r.peak_kv_bytes),
             with_commas(r.peak_rss_bytes));
}

}  // namespace

Json serve_json(const ServeReport& r) {
  const SchedulerStats& s = r.stats;
  const bool here = !r.elsewhere;
  Json owners = Json::object();
  for (const auto& [owner, times] : r.first_token_s_of_owner) owners.set(owner, percentiles_json(times));
  return {{"requests", r.requests},
          {"finished", s.finished},
          {"failed", s.failed},
          {"cancelled", s.cancelled},
          {"wall_s", r.wall_s},
          {"generated_tok_s", r.generated_tok_s},
          {"first_token_s", percentiles_json(r.first_token_s)},
          {"first_token_s_of_owner", owners},
          {"between_tokens_s", percentiles_json(r.between_tokens_s)},
          {"total_s", percentiles_json(r.total_s)},
          {"prompt_tokens_reused", if_known(r.reused_told, s.reused)},
          {"prompt_tokens_computed", if_known(r.reused_told, s.computed)},
          {"tokens_recomputed", if_known(here, s.recomputed)},
          {"tokens_generated", s.generated},
          {"tokens_guessed", if_known(here, s.guessed)},
          {"tokens_accepted", if_known(here, s.accepted)},
          {"preemptions", if_known(here, s.preemptions)},
          {"passes", if_known(here, s.passes)},
          {"pass_tokens", if_known(here, s.pass_tokens)},
          {"pass_s", if_known(here, s.pass_s)},
          {"pass_predicted_s", if_known(here, s.predicted_s)},
          {"peak_kv_bytes", if_known(here, r.peak_kv_bytes)},
          {"peak_rss_bytes", if_known(here, r.peak_rss_bytes)}};
}

void print_serve(const ServeReport& r) {
  const SchedulerStats& s = r.stats;
  fmt::print("{} requests in {:.1f} s: {} finished, {} cancelled, {} failed; {:.1f} tokens a second\n\n", r.requests,
             r.wall_s, s.finished, s.cancelled, s.failed, r.generated_tok_s);
  fmt::print("{:<22} {:>10} {:>10} {:>10} {:>10}\n", "", "p50", "p95", "p99", "most");
  print_times("first token", r.first_token_s);
  print_times("between two tokens", r.between_tokens_s);
  print_times("whole request", r.total_s);
  if (!r.reused_told) return;
  fmt::print("\nprompt tokens  {} computed, {} reused ({:.1f} %)", s.computed, s.reused,
             100.0 * static_cast<double>(s.reused) / static_cast<double>(std::max<int64_t>(1, s.reused + s.computed)));
  if (!r.elsewhere) fmt::print("; {} computed again after {} preemptions", s.recomputed, s.preemptions);
  fmt::print("\n");
  if (!r.elsewhere) print_passes(r);
}

}  // namespace kvasir::cli
