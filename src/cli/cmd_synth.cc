// kvasir synth: writes a random model of a real shape.
#include <unistd.h>

#include <cstdio>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/cli.h"
#include "lab/synth.h"

namespace kvasir::cli {
namespace {

struct Args {
  SynthOptions options;
  std::string out;
  bool json = false;
};

void show_progress(uint64_t done, uint64_t all) {
  static int shown = -1;
  const int percent = static_cast<int>(100 * (done >> 10) / std::max<uint64_t>(1, all >> 10));
  if (percent != shown) fmt::print(stderr, "\rwriting weights {:>3}%{}", percent, done == all ? "\n" : "");
  shown = percent;
}

Result<int> run(Args& a) {
  a.options.out = a.out;
  if (isatty(STDERR_FILENO)) a.options.progress = show_progress;
  KVASIR_CHECK(synthesize(a.options));
  ModelOptions mapped;
  mapped.weights = WeightsMode::mapped;
  KVASIR_TRY(const auto model, Model::open(a.out, mapped));  // checks that the folder is a valid model
  const auto parameters = static_cast<uint64_t>(model->info().parameters);
  const uint64_t bytes = parameters * (a.options.dtype == "f32" ? 4 : 2);
  if (a.json)
    print_json({{"out", a.out},
                {"shape", a.options.shape},
                {"dtype", a.options.dtype},
                {"seed", a.options.seed},
                {"parameters", parameters},
                {"weights_bytes", bytes}});
  else
    fmt::print("{}: {} parameters, {} bytes of {}\n", a.out, with_commas(parameters), with_commas(bytes),
               a.options.dtype);
  return kOk;
}

void add(Flags& flags, Run* run_command) {
  auto a = std::make_shared<Args>();
  flags.bind(flag::kShape, &a->options.shape);
  flags.bind(flag::kSynthOut, &a->out);
  flags.bind(flag::kSynthDtype, &a->options.dtype);
  flags.bind(flag::kSynthSeed, &a->options.seed);
  flags.bind(flag::kForceFolder, &a->options.force);
  flags.bind(with_help(flag::kJson, "one JSON object on stdout: out, shape, dtype, seed, parameters, weights_bytes"),
             &a->json);
  flags.footer(fmt::format("Shapes: {}\n\n", fmt::join(synth_shape_names(), ", ")) +
               "Examples:\n  kvasir synth smollm2-135m /tmp/smol --dtype f16 --seed 1\n"
               "  kvasir synth path/to/config.json /tmp/model");
  *run_command = [a] { return run(*a); };
}

}  // namespace

extern const Command cmd_synth;
const Command cmd_synth{"synth", "write a random model of a real shape", add};

}  // namespace kvasir::cli
