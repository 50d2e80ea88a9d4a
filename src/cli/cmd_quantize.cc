// kvasir quantize: writes a model as a GGUF file in another weight type.
#include <unistd.h>

#include <algorithm>
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

// The least and the largest error of a type's tensors.
std::string range_of(const QuantizeReport& report, const std::string& type) {
  double least = 1, most = 0;
  for (const QuantizeReport::Tensor& tensor : report.tensors)
    if (tensor.type == type) least = std::min(least, tensor.error), most = std::max(most, tensor.error);
  return most == 0 ? "0" : fmt::format("{:.4f} to {:.4f}", least, most);
}

void print_report(const Args& a, const QuantizeReport& report) {
  fmt::print("{}: {} parameters, {} bytes\n", a.out, with_commas(static_cast<uint64_t>(report.parameters)),
             with_commas(report.file_bytes));
  for (const QuantizeReport::Type& type : report.types)
    fmt::print("  {:<6} {:>4} tensors {:>16} bytes  error {}\n", type.name, type.tensors, with_commas(type.bytes),
               range_of(report, type.name));
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
  Json tensors = Json::array();
  for (const QuantizeReport::Tensor& tensor : report.tensors)
    tensors.push_back({{"name", tensor.name}, {"type", tensor.type}, {"error", tensor.error}});
  print_json({{"out", a.out},
              {"type", a.options.type},
              {"parameters", report.parameters},
              {"file_bytes", report.file_bytes},
              {"types", types},
              {"tensors", tensors},
              {"notes", report.notes}});
  return kOk;
}

void add(Flags& flags, Run* run_command) {
  auto a = std::make_shared<Args>();
  flags.bind(flag::kQuantizeModel, &a->options.model);
  flags.bind(flag::kQuantizeOut, &a->out);
  flags.bind(flag::kQuantizeType, &a->options.type);
  flags.bind(flag::kImportance, &a->options.importance);
  flags.bind(flag::kTensorTypes, &a->options.types);
  flags.bind(flag::kTokenizer, &a->options.tokenizer);
  flags.bind(flag::kNoTokenizer, &a->no_tokenizer);
  flags.bind(flag::kThreads, &a->options.threads);
  flags.bind(flag::kForceFile, &a->options.force);
  flags.bind(
      with_help(flag::kJson, "one JSON object on stdout: out, type, parameters, file_bytes, types, tensors, notes"),
      &a->json);
  flags.footer(
      "q2_k, q3_k_m, q3_k_l, q4_k_s, q4_k_m, q5_k_m, iq4_nl and iq4_xs are mixes: some matrices get more bits, as in\n"
      "llama.cpp. The matrix that makes the logits is q6_k with a type of fewer bits. mxfp4 is for experts, the\n"
      "rest is q8_0 then. Rows that are not whole blocks of the type fall back to another type, and a note says so.\n"
      "An error is the root of the squared errors' sum over the squares' sum, of one tensor; --json has all.\n"
      "Examples:\n  kvasir quantize tales /tmp/tales-q8_0.gguf --type q8_0\n"
      "  kvasir quantize path/to/folder /tmp/model.gguf --type q4_k --force");
  *run_command = [a] { return run(*a); };
}

}  // namespace

extern const Command cmd_quantize;
const Command cmd_quantize{"quantize", "write a model as GGUF in another weight type", add};

}  // namespace kvasir::cli
