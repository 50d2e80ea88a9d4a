// kvasir imatrix: measures which weights matter for a text, for quantize.
#include <cstdio>

#include <fmt/format.h>

#include "cli/cli.h"
#include "cli/progress.h"
#include "lab/quantize_importance.h"

namespace kvasir::cli {
namespace {

struct Args {
  ImportanceOptions options;
  std::string file, out = "imatrix.gguf";
  bool json = false;
};

Result<int> run(Args& a) {
  KVASIR_TRY(const std::string text, read_text_file(a.file));
  a.options.out = a.out;
  a.options.text_name = a.file;
  a.options.windows.progress = window_bar();
  const auto report = measure_importance(a.options, text);
  clear_bar();
  if (!report) return tl::unexpected<Error>(report.error());
  for (const std::string& name : report->missing) fmt::print(stderr, "note: {} has no activations\n", name);
  const PerplexityReport& p = report->perplexity;
  if (a.json)
    print_json({{"out", a.out},
                {"tensors", report->matrix.size()},
                {"missing", report->missing},
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
  a->options.windows.session.ctx = 512;
  flags.bind(flag::kImatrixModel, &a->options.model);
  flags.bind(flag::kThreads, &a->options.threads);
  flags.bind(flag::kWindowTokens, &a->options.windows.session.ctx);
  flags.bind(flag::kTextFile, &a->file);
  flags.bind(flag::kChunks, &a->options.windows.windows);
  flags.bind(flag::kImatrixOut, &a->out);
  flags.bind(flag::kForceFile, &a->options.force);
  flags.bind(
      with_help(flag::kJson, "one JSON object on stdout: out, tensors, missing, windows, ctx, perplexity, seconds"),
      &a->json);
  flags.footer(
      "MODEL is a GGUF file. Sums over the text the squares of what each matrix is multiplied with, for\n"
      "quantize --imatrix. The file has the form of llama-imatrix's.\n\n"
      "Examples:\n  kvasir imatrix path/to/model-bf16.gguf --file path/to/text.txt\n"
      "  kvasir quantize path/to/model-bf16.gguf model-q2_k.gguf --type q2_k --imatrix path/to/imatrix.gguf");
  *run_command = [a] { return run(*a); };
}

}  // namespace

extern const Command cmd_imatrix;
const Command cmd_imatrix{"imatrix", "measure which weights matter for a text, for quantize", add};

}  // namespace kvasir::cli
