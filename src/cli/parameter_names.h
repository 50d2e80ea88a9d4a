// The flag of each parameter of the API: errors of the library name parameters, the command line shows flags instead.
// The flags themselves are declared in flag_list.h.
#pragma once

#include <string>
#include <string_view>

#include <kvasir/result.h>

namespace kvasir::cli {

struct ParameterName {
  std::string_view parameter;  ///< "SessionOptions::ctx", or with a value that has its own flag: "X::force = true"
  std::string_view flag;       ///< empty: no command has a flag, and texts keep the parameter's name
};

inline constexpr ParameterName kParameterNames[] = {
    {"BenchOptions::batch", "--batch"},
    {"BenchOptions::depth", "--depth"},
    {"BenchOptions::generate", "-n"},
    {"BenchOptions::prompt", "-p"},
    {"BenchOptions::repeats", "--repeats"},
    {"BenchOptions::threads", "--threads"},
    {"DriftOptions::candidates", "--types"},
    {"EngineOptions::prefill_chunk", "--prefill-chunk"},
    {"EngineOptions::prefix_ram", "--prefix-ram"},
    {"EngineOptions::threads", "--threads"},
    {"Feed::tokens", "-p"},
    {"GenerateOptions::logprobs", ""},
    {"GenerateOptions::lookup", "--lookup"},
    {"GenerateOptions::max_tokens", "-n"},
    {"GenerateOptions::min_tokens", ""},
    {"GenerateOptions::on_full", "--on-full"},
    {"GenerateOptions::stop", "--stop"},
    {"GenerateOptions::stop_ids", ""},
    {"Generator::prompt", "-p"},
    {"Generator::resume", ""},
    {"ModelOptions::kv_ram", "--kv-ram"},
    {"ModelOptions::ram", "--ram"},
    {"ModelOptions::tokenizer", "--tokenizer"},
    {"ModelOptions::weights", "--weights"},
    {"PerplexityOptions::windows", "--chunks"},
    {"PlanRequest::chat", "--chat"},
    {"PlanRequest::dtype", "--dtype"},
    {"PlanRequest::prefill_chunk", "--prefill-chunk"},
    {"PlanRequest::threads", "--threads"},
    {"PrefixOptions::repeats", "--repeats"},
    {"PrefixOptions::shared", "--prefix"},
    {"PrefixOptions::suffix", "--prefix"},
    {"PullOptions::endpoint", "--endpoint"},
    {"PullOptions::model", "NAME"},
    {"QuantizeOptions::force = true", "--force"},
    {"QuantizeOptions::tokenizer", "--tokenizer"},
    {"QuantizeOptions::type", "--type"},
    {"QuantizeOptions::types", "--keep"},
    {"QuantizeOptions::with_tokenizer = false", "--no-tokenizer"},
    {"ReplayOptions::model", "--served-model"},
    {"ReplayOptions::vocab", "--n-vocab"},
    {"Request::choices", ""},
    {"Request::resume", ""},
    {"Request::timeout_s", ""},
    {"Request::weight", ""},
    {"SamplingParams::logit_bias", "--logit-bias"},
    {"SamplingParams::more", ""},
    {"SamplingParams::samplers", "--samplers"},
    {"SchedulerOptions::draft", "--draft"},
    {"SchedulerOptions::draft_tokens", "--draft-tokens"},
    {"SchedulerOptions::max_queue", ""},
    {"SchedulerOptions::max_sequences", "--max-sequences"},
    {"SchedulerOptions::step_ms", "--step-ms"},
    {"SessionOptions::ctx", "--ctx"},
    {"SessionOptions::kv_type_k and kv_type_v", "--kv-type"},
    {"SessionOptions::kv_type_k", "--ctk"},
    {"SessionOptions::kv_type_v", "--ctv"},
    {"SessionOptions::layout", "--cache"},
    {"SessionOptions::max_positions", ""},
    {"SessionOptions::sinks", "--sinks"},
    {"SessionOptions::window", "--window"},
    {"SynthOptions::dtype", "--dtype"},
    {"SynthOptions::force = true", "--force"},
    {"SynthOptions::out", "OUT"},
    {"VerifyOptions::batches", "--batches"},
    {"VerifyOptions::chunks", "--chunks"},
    {"VerifyOptions::new_tokens", "-n"},
    {"VerifyOptions::prompts", "--prompts"},
    {"VerifyOptions::threads", "--threads"},
    {"generate_batch::batch", "--batch"},
    {"generate_samples::samples", "--samples"},
};

/// Replaces each parameter of the table and of the samplers in a text of the library by its flag: "SessionOptions::ctx
/// = 64" becomes "--ctx 64".
std::string with_flags(std::string_view text);
/// Does the same for Error::what, where and hint.
Error with_flags(const Error& error);

}  // namespace kvasir::cli
