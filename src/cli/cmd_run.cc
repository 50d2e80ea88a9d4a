// kvasir run: generate from a prompt.
#include <unistd.h>

#include <cstdio>
#include <random>

#include <fmt/format.h>

#include "cli/cli.h"
#include "cli/prompt_args.h"

namespace kvasir::cli {
namespace {

struct Args {
  ModelArgs model;
  EngineArgs engine;
  PromptArgs prompt;
  int n = -1;
  bool greedy = false, stats = false, json = false, receipt = false, ignore_eos = false;
  std::optional<double> temperature, top_p, min_p, repeat_penalty;
  std::optional<int> top_k, repeat_last_n;
  std::optional<uint64_t> seed;
  std::vector<std::string> stop;
  std::string on_full = "stop";
};

// "slide" is a matter of the session's window, in a cache that can forget unless another was asked for.
SessionOptions session_options(const Args& a, bool cache_given) {
  SessionOptions session = a.engine.session;
  session.slide = a.on_full == "slide";
  if (session.slide && !cache_given) session.layout = "windowed";
  return session;
}

void add_sampling(CLI::App& app, Args& a) {
  app.add_flag("--greedy", a.greedy, "always the most likely token; the same as --temp 0");
  app.add_option("--temp", a.temperature, "temperature; the model's own default, else 0.8");
  app.add_option("--top-k", a.top_k, "keep the k most likely tokens; 0: all");
  app.add_option("--top-p", a.top_p, "keep the most likely tokens up to this probability");
  app.add_option("--min-p", a.min_p, "drop tokens below this share of the most likely one");
  app.add_option("--repeat-penalty", a.repeat_penalty, "divide the logits of recent tokens; 1: off");
  app.add_option("--repeat-last-n", a.repeat_last_n, "how many recent tokens that is");
  app.add_option("--seed", a.seed, "of the random numbers; without it a new one each time, shown by --stats")
      ->check(not_negative);
  app.add_option("--stop", a.stop, "end before this text; may be given more than once")->allow_extra_args(false);
}

SamplingParams sampling(const Args& a, const Model& model) {
  SamplingParams p = model.sampling_defaults();
  if (a.temperature) p.temperature = *a.temperature;
  if (a.top_k) p.top_k = *a.top_k;
  if (a.top_p) p.top_p = *a.top_p;
  if (a.min_p) p.min_p = *a.min_p;
  if (a.repeat_penalty) p.repeat_penalty = *a.repeat_penalty;
  if (a.repeat_last_n) p.repeat_last_n = *a.repeat_last_n;
  if (a.greedy) p.temperature = 0;
  p.seed = a.seed ? *a.seed : (uint64_t{std::random_device{}()} << 32 | std::random_device{}());
  return p;
}

double mib(size_t bytes) { return static_cast<double>(bytes) / (1024.0 * 1024.0); }

void print_rss(const RssByOwner& r) {
  fmt::print(stderr,
             "RSS         {:.1f} MiB at the end: weights {:.1f}, KV {:.1f}, activations {:.1f}, tokenizer {:.1f}, "
             "code {:.1f}, other {:.1f}; the kernel counts {:.1f}\n",
             mib(r.total()), mib(r.weights), mib(r.kv), mib(r.activations), mib(r.tokenizer), mib(r.code), mib(r.other),
             mib(r.kernel));
}

void print_stats(const Generation& g, const SamplingParams& p) {
  const GenStats& s = g.stats;
  const CacheStats& c = s.cache;
  fmt::print(stderr, "\n");
  fmt::print(stderr, "prompt      {} tokens, {:.1f} tok/s, first token after {:.1f} ms\n", g.prompt_tokens,
             s.prefill_tok_s, s.ttft_ms);
  fmt::print(stderr, "generated   {} tokens, {:.1f} tok/s, stopped by: {}\n", g.tokens.size(), s.decode_tok_s,
             g.stop_reason);
  fmt::print(stderr, "KV cache    {} bytes ({}, {} positions, K {}, V {}), predicted {}, peak {}, grown {} times\n",
             with_commas(c.bytes), c.layout, c.capacity, c.kv_type_k, c.kv_type_v, with_commas(c.predicted_bytes),
             with_commas(c.peak_bytes), c.growths);
  if (c.window != "none") fmt::print(stderr, "window      {}\n", c.window);
  if (c.saturated > 0)
    fmt::print(stderr, "saturated   {} values of K and V\n", with_commas(static_cast<uint64_t>(c.saturated)));
  fmt::print(stderr, "weights     {:.1f} MiB, {}\n", mib(s.weights_bytes), s.weights);
  fmt::print(stderr, "peak RSS    {:.1f} MiB\n", mib(s.peak_rss_bytes));
  if (s.rss) print_rss(*s.rss);
  fmt::print(stderr, "ran on      {} threads, {}\n", s.threads, s.cpu);
  if (p.temperature > 0) fmt::print(stderr, "seed        {}\n", p.seed);
}

nlohmann::json run_json(const Generation& g, const SamplingParams& p) {
  nlohmann::json json{{"text", g.text},
                      {"tokens", g.tokens},
                      {"prompt_tokens", g.prompt_tokens},
                      {"cached_tokens", g.cached_tokens},
                      {"generated_tokens", g.tokens.size()},
                      {"recomputed", g.recomputed},
                      {"stop_reason", g.stop_reason},
                      {"receipt", g.receipt},
                      {"seed", p.seed},
                      {"stats", to_json(g.stats)}};
  return json;
}

Result<int> run(const Args& a, bool cache_given) {
  KVASIR_TRY(const auto model, a.model.open());
  std::string text;
  KVASIR_TRY(const auto ids, a.prompt.tokens(*model, &text));
  KVASIR_TRY(const auto engine, Engine::create(model, a.engine.engine));
  KVASIR_TRY(auto session, engine->open_session(session_options(a, cache_given)));
  GenerateOptions options;
  options.sampling = sampling(a, *model);
  options.max_tokens = a.n;
  options.stop = a.stop;
  options.on_full = a.on_full == "recompute" ? OnFull::recompute : OnFull::stop;
  options.ignore_eos = a.ignore_eos;
  options.receipt = a.receipt || a.json;
  options.rss = a.stats || a.json;
  bool started = false;
  if (!a.json)
    options.on_text = [&](std::string_view piece) {
      if (!started) std::fwrite(text.data(), 1, text.size(), stdout);  // only once the prompt has been accepted
      started = true;
      std::fwrite(piece.data(), 1, piece.size(), stdout);
      std::fflush(stdout);
      return std::ferror(stdout) == 0;
    };
  KVASIR_TRY(const Generation g, generate(*engine, session, ids, options));
  if (a.json) {
    print_json(run_json(g, options.sampling));
    return kOk;
  }
  std::fputc('\n', stdout);
  if (a.receipt) fmt::print("receipt {}\n", g.receipt);
  std::fflush(stdout);
  if (a.stats) print_stats(g, options.sampling);
  return kOk;
}

void add(CLI::App& app, Run* run_command) {
  auto a = std::make_shared<Args>();
  a->model.add(app);
  a->engine.add(app);
  a->prompt.add(app);
  app.add_option("-n,--predict", a->n, "how many tokens; -1: until the end of the text or of the context")
      ->capture_default_str();
  add_sampling(app, *a);
  app.add_flag("--ignore-eos", a->ignore_eos, "go on past the end of the text");
  app.add_option(
         "--on-full", a->on_full,
         "when the context is full: stop; recompute its last half and go on; slide: let go of the oldest tokens "
         "but --sinks, an approximation (RoPE only)")
      ->check(CLI::IsMember({"stop", "recompute", "slide"}))
      ->capture_default_str();
  app.add_flag("--stats", a->stats, "what it cost, on stderr");
  app.add_flag("--receipt", a->receipt, "128 bits that stand for every logit computed");
  app.add_flag("--json", a->json, "one JSON object on stdout");
  app.footer(
      "Examples:\n  kvasir run tales -p \"Once upon a time\" -n 64 --stats\n"
      "  kvasir run tales -p Hello -n 16 --greedy --receipt --cache dense --threads 4");
  const CLI::Option* cache = app.get_option("--cache");
  *run_command = [a, cache] { return run(*a, cache->count() > 0); };
}

}  // namespace

extern const Command cmd_run;
const Command cmd_run{"run", "generate from a prompt", add};

}  // namespace kvasir::cli
