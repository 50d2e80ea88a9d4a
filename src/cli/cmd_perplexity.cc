// kvasir perplexity: measures how well a model predicts a text.
#include <cstdio>

#include <fmt/format.h>

#include "cli/cli.h"
#include "cli/progress.h"
#include "lab/perplexity.h"

namespace kvasir::cli {
namespace {

struct Args {
  ModelArgs model;
  EngineArgs engine;
  std::string file;
  int chunks = 0;
  bool json = false;
};

void print_report(const PerplexityReport& r) {
  fmt::print("perplexity {:.4f} ± {:.4f}\n", r.perplexity, r.standard_error);
  fmt::print("{} tokens scored in {} windows of {}; the text has {}; {:.1f} s, {:.0f} tok/s\n",
             with_commas(static_cast<uint64_t>(r.scored)), r.windows, r.window,
             with_commas(static_cast<uint64_t>(r.tokens)), r.seconds,
             static_cast<double>(r.window) * r.windows / r.seconds);
}

Json report_json(const PerplexityReport& r, const Engine& engine, const SessionOptions& session) {
  return {{"perplexity", r.perplexity},
          {"standard_error", r.standard_error},
          {"nll", r.nll},
          {"scored_tokens", r.scored},
          {"tokens", r.tokens},
          {"ctx", r.window},
          {"windows", r.windows},
          {"seconds", r.seconds},
          {"threads", engine.threads()},
          {"kv_type_k", session.kv_type_k},
          {"kv_type_v", session.kv_type_v}};
}

Result<int> run(const Args& a) {
  KVASIR_TRY(const std::string text, read_text_file(a.file));
  KVASIR_TRY(const auto model, a.model.open());
  KVASIR_TRY(const auto ids, encode(*model, text));
  KVASIR_TRY(const auto engine, Engine::create(model, a.engine.engine));
  PerplexityOptions options;
  options.session = a.engine.session;
  options.windows = a.chunks;
  options.progress = window_bar();
  const auto report = perplexity(*engine, ids, model->tokenizer()->bos(), options);
  clear_bar();
  if (!report) return tl::unexpected<Error>(report.error());
  if (a.json)
    print_json(report_json(*report, *engine, a.engine.session));
  else
    print_report(*report);
  return kOk;
}

void add(Flags& flags, Run* run_command) {
  auto a = std::make_shared<Args>();
  a->engine.session.ctx = 512;
  a->model.add(flags);
  a->engine.add(flags, flag::kWindowTokens);
  add_kv_types(flags, a->engine.session);
  flags.bind(flag::kTextFile, &a->file);
  flags.bind(flag::kChunks, &a->chunks);
  flags.bind(with_help(flag::kJson,
                       "one JSON object on stdout: perplexity, standard_error, nll, scored_tokens, tokens, ctx, "
                       "windows, seconds, threads, kv_type_k, kv_type_v"),
             &a->json);
  flags.footer(
      "The text is cut into windows; the second half of each is scored, as llama-perplexity does it.\n\n"
      "Examples:\n  kvasir perplexity tales --file story.txt\n"
      "  kvasir perplexity model.gguf -f wiki.test.raw --ctx 512 --chunks 20 --json");
  *run_command = [a] { return run(*a); };
}

}  // namespace

extern const Command cmd_perplexity;
const Command cmd_perplexity{"perplexity", "measure how well a model predicts a text", add};

}  // namespace kvasir::cli
