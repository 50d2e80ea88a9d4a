// kvasir quantize: writes a model as a GGUF file in another weight type.
#include <unistd.h>

#include <cstdio>

#include <fmt/format.h>

#include "cli/cli.h"
#include "lab/quantize.h"

namespace kvasir::cli {
namespace {

struct Args {
  QuantizeOptions options;
  std::string out;
  bool no_tokenizer = false, json = false;
};

void show_progress(uint64_t done, uint64_t all) {
  static int shown = -1;
  const int percent = static_cast<int>(100 * (done >> 10) / std::max<uint64_t>(1, all >> 10));
  if (percent != shown) fmt::print(stderr, "\rquantising {:>3}%{}", percent, done == all ? "\n" : "");
  shown = percent;
}

void print_report(const Args& a, const QuantizeReport& report) {
  fmt::print("{}: {} parameters, {} bytes\n", a.out, with_commas(static_cast<uint64_t>(report.parameters)),
             with_commas(report.file_bytes));
  for (const QuantizeReport::Type& type : report.types)
    fmt::print("  {:<5} {:>4} tensors {:>16} bytes\n", type.name, type.tensors, with_commas(type.bytes));
}

Result<int> run(Args& a) {
  a.options.out = a.out;
  a.options.with_tokenizer = !a.no_tokenizer;
  if (isatty(STDERR_FILENO)) a.options.progress = show_progress;
  KVASIR_TRY(const QuantizeReport report, quantize(a.options));
  ModelOptions mapped;
  mapped.weights = WeightsMode::mapped;
  KVASIR_CHECK(Model::open(a.out, mapped));  // checks that the file is a valid model
  for (const std::string& note : report.notes) fmt::print(stderr, "note: {}\n", note);
  if (!a.json) {
    print_report(a, report);
    return kOk;
  }
  Json types = Json::array();
  for (const QuantizeReport::Type& type : report.types)
    types.push_back({{"type", type.name}, {"tensors", type.tensors}, {"bytes", type.bytes}});
  print_json({{"out", a.out},
              {"type", a.options.type},
              {"parameters", report.parameters},
              {"file_bytes", report.file_bytes},
              {"types", types},
              {"notes", report.notes}});
  return kOk;
}

void add(Flags& flags, Run* run_command) {
  auto a = std::make_shared<Args>();
  flags.bind(flag::kQuantizeModel, &a->options.model);
  flags.bind(flag::kQuantizeOut, &a->out);
  flags.bind(flag::kQuantizeType, &a->options.type);
  flags.bind(flag::kTokenizer, &a->options.tokenizer);
  flags.bind(flag::kNoTokenizer, &a->no_tokenizer);
  flags.bind(flag::kThreads, &a->options.threads);
  flags.bind(flag::kForceFile, &a->options.force);
  flags.bind(with_help(flag::kJson, "one JSON object on stdout: out, type, parameters, file_bytes, types, notes"),
             &a->json);
  flags.footer(
      "q2_k, q3_k_m, q3_k_l, q4_k_s, q4_k_m, q5_k_m, iq4_nl and iq4_xs are mixes: some matrices get more bits, chosen as\n"
      "llama.cpp does. The matrix that makes the logits is q6_k with a type of fewer bits. mxfp4 is for experts, the\n"
      "rest is q8_0 then. Rows that are not whole blocks of the type fall back to another type, and a note says so.\n"
      "Examples:\n  kvasir quantize tales /tmp/tales-q8_0.gguf --type q8_0\n"
      "  kvasir quantize path/to/folder /tmp/model.gguf --type q4_k --force");
  *run_command = [a] { return run(*a); };
}

}  // namespace

extern const Command cmd_quantize;
const Command cmd_quantize{"quantize", "write a model as GGUF in another weight type", add};

}  // namespace kvasir::cli
