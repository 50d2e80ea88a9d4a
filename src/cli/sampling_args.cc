// Turns the flags of sampling into SamplingParams.
#include "cli/sampling_args.h"

#include <charconv>
#include <random>

#include <fmt/format.h>

#include "cli/parameter_names.h"
#include "cli/sampling_names.h"

namespace kvasir::cli {
namespace {

// A parameter's flag, and the strings that the flag points to.
struct ParamFlag {
  const SamplerParam* param;
  std::string names, help, needs;
  Flag flag = {};
};

ParamFlag param_flag(const SamplerParam& param) {
  return {.param = &param,
          .names = sampling_flags(param.name),
          .help = with_flags(param.summary),
          .needs = param.needs.empty() ? "" : sampling_flag(param.needs)};
}

const std::deque<ParamFlag>& param_flags() {
  static const auto list = [] {
    std::deque<ParamFlag> flags;
    for (const SamplerInfo& sampler : samplers())
      for (const SamplerParam& param : sampler.params) {
        ParamFlag& f = flags.emplace_back(param_flag(param));
        f.flag = {.names = f.names.c_str(),
                  .help = f.help.c_str(),
                  .kind = param.whole ? Kind::integer : Kind::real,
                  .low = param.least,
                  .high = param.greatest,
                  .unit = param.whole ? "tokens" : "",
                  .needs = f.needs.c_str()};
        if (param.whole && param.least == -1) {  // -1 means all
          f.flag.low = 0;
          f.flag.also = -1;
        }
      }
    return flags;
  }();
  return list;
}

Result<std::pair<int, float>> parse_bias(const std::string& text) {
  int id = 0;
  float bias = 0;
  const char* const end = text.data() + text.size();
  const auto number = std::from_chars(text.data(), end, id);
  if (number.ec == std::errc() && number.ptr != end && *number.ptr == ':') {
    const auto value = std::from_chars(number.ptr + 1, end, bias);
    if (value.ec == std::errc() && value.ptr == end) return std::pair(id, bias);
  }
  return fail(Error::bad_argument, fmt::format("\"{}\" is not ID:BIAS", text), shown_name(flag::kLogitBias),
              "15043:-1.5");
}

}  // namespace

void SamplingArgs::add(Flags& flags) {
  flags.bind(flag::kGreedy, &greedy);
  for (const ParamFlag& f : param_flags()) {
    Number& number = numbers.emplace_back(Number{.param = f.param});
    if (f.param->whole)
      flags.bind(f.flag, &number.whole);
    else
      flags.bind(f.flag, &number.real);
  }
  flags.bind(flag::kLogitBias, &logit_bias);
  flags.bind(flag::kSamplers, &samplers);
  flags.bind(flag::kSeed, &seed);
  flags.bind(flag::kStop, &stop);
}

bool SamplingArgs::given(std::string_view parameter) const {
  return std::any_of(numbers.begin(), numbers.end(),
                     [parameter](const Number& n) { return n.param->name == parameter && (n.whole || n.real); });
}

Result<SamplingParams> SamplingArgs::params(const Model& model) const {
  SamplingParams p = model.sampling_defaults();
  if (given("repeat_penalty")) p.repeat_last_n = SamplingParams().repeat_last_n;
  for (const Number& n : numbers) {
    if (n.whole) set_value(p, *n.param, *n.whole);
    if (n.real) set_value(p, *n.param, *n.real);
  }
  if (given("repeat_last_n") && !given("repeat_penalty") && p.repeat_penalty == 1.0)
    return fail(Error::bad_argument, "it has no effect: this model has no penalty of its own",
                sampling_flag("repeat_last_n"), sampling_flag("repeat_penalty") + " too");
  for (const std::string& text : logit_bias) {
    KVASIR_TRY(const auto bias, parse_bias(text));
    p.logit_bias[bias.first] = bias.second;
  }
  p.samplers = samplers;
  if (greedy) p.temperature = 0;
  p.seed = seed ? *seed : (uint64_t{std::random_device{}()} << 32 | std::random_device{}());
  return p;
}

}  // namespace kvasir::cli
