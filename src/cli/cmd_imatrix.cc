// kvasir imatrix: measures which weights matter for a text, for quantize.
#include <filesystem>

#include <fmt/format.h>

#include "cli/cli.h"
#include "cli/progress.h"
#include "lab/quantize_importance.h"

namespace kvasir::cli {
namespace {

struct Args {
  std::string model;
  EngineOptions engine;
  int ctx = 512;
  std::string file, out = "imatrix.gguf";
  int chunks = 0;
  bool force = false, json = false;
};

Result<int> run(Args& a) {
  std::error_code ec;
  if (!a.force && std::filesystem::exists(a.out, ec))
    return fail(Error::bad_argument, "exists", a.out, "another name, or --force to replace it");
  KVASIR_TRY(const std::string text, read_text_file(a.file));
  ModelOptions mapped;
  mapped.weights = WeightsMode::mapped;  // a product's tensor is found by its address in the file
  KVASIR_TRY(const auto model, Model::open(a.model, mapped));
  KVASIR_TRY(const auto ids, encode(*model, text));
  KVASIR_TRY(const auto engine, Engine::create(model, a.engine));
  PerplexityOptions options;
  options.session.ctx = a.ctx;
  options.windows = a.chunks;
  options.progress = window_bar();
  KVASIR_TRY(const std::string path, find_model(a.model));
  const auto report = collect_importance(*engine, path, ids, model->tokenizer()->bos(), options);
  clear_bar();
  if (!report) return tl::unexpected<Error>(report.error());
  const PerplexityReport& p = report->perplexity;
  KVASIR_CHECK(write_importance(a.out, report->matrix, a.file, p.windows, p.window));
  if (a.json)
    print_json({{"out", a.out},
                {"tensors", report->matrix.size()},
                {"windows", p.windows},
                {"ctx", p.window},
                {"perplexity", p.perplexity},
                {"seconds", p.seconds}});
  else
    fmt::print("{}: {} tensors, {} windows of {}; perplexity {:.4f}, {:.1f} s\n", a.out, report->matrix.size(),
               p.windows, p.window, p.perplexity, p.seconds);
  return kOk;
}

void add(Flags& flags, Run* run_command) {
  auto a = std::make_shared<Args>();
  flags.bind(flag::kImatrixModel, &a->model);
  flags.bind(flag::kThreads, &a->engine.threads);
  flags.bind(flag::kWindowTokens, &a->ctx);
  flags.bind(flag::kTextFile, &a->file);
  flags.bind(flag::kChunks, &a->chunks);
  flags.bind(flag::kImatrixOut, &a->out);
  flags.bind(flag::kForceFile, &a->force);
  flags.bind(with_help(flag::kJson, "one JSON object on stdout: out, tensors, windows, ctx, perplexity, seconds"),
             &a->json);
  flags.footer(
      "MODEL is a GGUF file. The squares of what each matrix is multiplied with are summed over the text; --imatrix "
      "of\n"
      "quantize weighs errors with them. The file is that of llama-imatrix.\n\n"
      "Examples:\n  kvasir imatrix path/to/model-bf16.gguf --file path/to/text.txt\n"
      "  kvasir quantize path/to/model-bf16.gguf model-q2_k.gguf --type q2_k --imatrix path/to/imatrix.gguf");
  *run_command = [a] { return run(*a); };
}

}  // namespace

extern const Command cmd_imatrix;
const Command cmd_imatrix{"imatrix", "measure which weights matter for a text, for quantize", add};

}  // namespace kvasir::cli
