// kvasir quantize: a model as a GGUF file, in another weight type.
#include <unistd.h>

#include <cstdio>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/cli.h"
#include "engine/quantize.h"

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
  mapped.weights = "mapped";
  KVASIR_CHECK(Model::open(a.out, mapped));  // what was written is a model, then
  for (const std::string& note : report.notes) fmt::print(stderr, "note: {}\n", note);
  if (!a.json) {
    print_report(a, report);
    return kOk;
  }
  nlohmann::json types = nlohmann::json::array();
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

void add(CLI::App& app, Run* run_command) {
  auto a = std::make_shared<Args>();
  app.add_option("MODEL", a->options.model,
                 "a Hugging Face folder, a .gguf or llama2.c .bin of floats, or a model that ships with Kvasir")
      ->required();
  app.add_option("OUT", a->out, "the GGUF file to write")->required();
  app.add_option("--type", a->options.type, fmt::format("{}", fmt::join(quantize_types(), ", ")))->required();
  app.add_option("--tokenizer", a->options.tokenizer, "a tokenizer file; else the one beside the model");
  app.add_flag("--no-tokenizer", a->no_tokenizer, "write no tokenizer: only token ids will work");
  app.add_option("-t,--threads", a->options.threads, "threads; 0: as many as this process may use cores");
  app.add_flag("--force", a->options.force, "replace OUT");
  app.add_flag("--json", a->json, "one JSON object on stdout: out, type, parameters, file_bytes, types, notes");
  app.footer(
      "Rows that are no whole blocks of the type fall back, and a note says so. The vocabulary's matrices of a\n"
      "4-bit type are q6_k.\n"
      "Examples:\n  kvasir quantize tales /tmp/tales-q8_0.gguf --type q8_0\n"
      "  kvasir quantize path/to/folder /tmp/model.gguf --type q4_k --force");
  *run_command = [a] { return run(*a); };
}

}  // namespace

extern const Command cmd_quantize;
const Command cmd_quantize{"quantize", "write a model as GGUF in another weight type", add};

}  // namespace kvasir::cli
