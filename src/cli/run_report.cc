// The statistics of a generation as text, and its results as JSON.
#include "cli/run_report.h"

#include <cstdio>

#include <fmt/format.h>

#include "cli/cli.h"

namespace kvasir::cli {
namespace {

double mib(size_t bytes) { return static_cast<double>(bytes) / (1024.0 * 1024.0); }

void print_rss(const RssByOwner& r) {
  fmt::print(stderr,
             "RSS         {:.1f} MiB at the end: weights {:.1f}, KV {:.1f}, activations {:.1f}, tokenizer {:.1f}, "
             "code {:.1f}, other {:.1f}; the kernel counts {:.1f}\n",
             mib(r.total()), mib(r.weights), mib(r.kv), mib(r.activations), mib(r.tokenizer), mib(r.code), mib(r.other),
             mib(r.kernel));
}

void print_weights(const GenStats& s) {
  fmt::print(stderr, "weights     {:.1f} MiB, {}", mib(s.weights_bytes), s.weights);
  if (s.weights == "streamed") fmt::print(stderr, ", {:.1f} of them in memory", mib(s.weight_stats.memory_bytes));
  fmt::print(stderr, "\n");
  const WeightStats& w = s.weight_stats;
  if (w.experts == 0) return;
  fmt::print(stderr, "experts     {} used, {:.1f} % of them were in memory; {} of {} guesses were right\n",
             with_commas(static_cast<uint64_t>(w.experts)),
             100.0 * static_cast<double>(w.experts - w.experts_read) / static_cast<double>(w.experts),
             with_commas(static_cast<uint64_t>(w.guesses_used)), with_commas(static_cast<uint64_t>(w.experts_guessed)));
}

}  // namespace

void print_stats(const Generation& g, const SamplingParams& p) {
  const GenStats& s = g.stats;
  const CacheStats& c = s.cache;
  fmt::print(stderr, "\n");
  fmt::print(stderr, "prompt      {} tokens, {:.1f} tok/s, first token after {:.1f} ms\n", g.prompt_tokens,
             s.prefill_tok_s, s.ttft_ms);
  if (g.cached_tokens > 0) fmt::print(stderr, "reused      {} of them\n", g.cached_tokens);
  if (g.differs >= 0) fmt::print(stderr, "differs     from the session's text at token {}\n", g.differs);
  fmt::print(stderr, "generated   {} tokens, {:.1f} tok/s, stopped by: {}\n", g.tokens.size(), s.decode_tok_s,
             stop_reason_name(g.stop_reason));
  fmt::print(stderr, "KV cache    {} bytes ({}, {} positions, K {}, V {}), predicted {}, peak {}, grown {} times\n",
             with_commas(c.bytes), c.layout, c.capacity, c.kv_type_k, c.kv_type_v, with_commas(c.predicted_bytes),
             with_commas(c.peak_bytes), c.growths);
  if (g.guessed > 0) fmt::print(stderr, "lookup      {} of {} guesses accepted\n", g.accepted, g.guessed);
  if (g.waited > 0) fmt::print(stderr, "waited      {} times for memory, and was computed again\n", g.waited);
  if (c.window != "none") fmt::print(stderr, "window      {}\n", c.window);
  if (c.saturated > 0)
    fmt::print(stderr, "saturated   {} values of K and V\n", with_commas(static_cast<uint64_t>(c.saturated)));
  print_weights(s);
  fmt::print(stderr, "peak RSS    {:.1f} MiB\n", mib(s.peak_rss_bytes));
  if (s.rss) print_rss(*s.rss);
  fmt::print(stderr, "ran on      {} threads, {}\n", s.threads, s.cpu);
  if (p.temperature > 0) fmt::print(stderr, "seed        {}\n", p.seed);
}

Json run_json(const Generation& g, const SamplingParams& p) {
  Json json{{"text", g.text},
            {"tokens", g.tokens},
            {"prompt_tokens", g.prompt_tokens},
            {"cached_tokens", g.cached_tokens},
            {"differs", g.differs},
            {"generated_tokens", g.tokens.size()},
            {"recomputed", g.recomputed},
            {"waited", g.waited},
            {"guessed", g.guessed},
            {"accepted", g.accepted},
            {"stop_reason", std::string(stop_reason_name(g.stop_reason))},
            {"receipt", g.receipt},
            {"seed", p.seed},
            {"stats", to_json(g.stats)}};
  return json;
}

}  // namespace kvasir::cli
