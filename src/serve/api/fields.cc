// The table of request fields, their readers, and the loop that reads them in order.
#include "serve/api/fields.h"

#include <algorithm>
#include <climits>

#include <fmt/format.h>

#include "serve/api/field_values.h"

namespace kvasir::serve {
namespace {

using Read = std::function<Result<void>(const Json& value, Call* call)>;

// ---- readers ------------------------------------------------------------------------------------------------------

Read into(std::function<void(Call*, bool)> put) {
  return [put](const Json& value, Call* call) -> Result<void> {
    KVASIR_TRY(const bool given, as_bool(value));
    put(call, given);
    return {};
  };
}

Read into(int64_t least, int64_t most, std::function<void(Call*, int64_t)> put) {
  return [least, most, put](const Json& value, Call* call) -> Result<void> {
    KVASIR_TRY(const int64_t given, as_integer(value, least, most));
    put(call, given);
    return {};
  };
}

Read into(std::function<void(Call*, std::string)> put) {
  return [put](const Json& value, Call* call) -> Result<void> {
    KVASIR_TRY(std::string given, as_string(value));
    put(call, std::move(given));
    return {};
  };
}

Result<void> not_supported(const std::string& what) { return fail(Error::unsupported, what); }

// Reads a field that is not supported, except with a value that is `harmless`.
Read only(std::function<bool(const Json&)> harmless, const char* what) {
  return [harmless, what](const Json& value, Call* call) -> Result<void> {
    (void)call;
    return harmless(value) ? Result<void>() : not_supported(what);
  };
}

bool nothing_in(const Json& value) { return value.empty() || value == "" || value == false; }

Result<void> read_max_tokens(const Json& value, Call* call) {
  KVASIR_TRY(const int64_t given, as_integer(value, 0, INT64_MAX));
  call->nothing = given == 0;
  call->request.options.max_tokens = static_cast<int>(std::clamp<int64_t>(given, 1, INT_MAX));
  return {};
}

// Reads a string, an array of strings, an array of ids, or an array of arrays of ids.
Result<void> read_prompts(const Json& value, Call* call) {
  constexpr size_t kMost = 2048;
  if (value.is_string()) {
    call->prompts = {value.get<std::string>()};
    return {};
  }
  if (!value.is_array() || value.empty())
    return fail(Error::bad_argument, shown(value) + " is no prompt", {},
                "a string, an array of strings, of token ids, or of arrays of token ids");
  if (value[0].is_number()) {
    KVASIR_TRY(std::vector<int> ids, as_ids(value));
    call->prompts = {std::move(ids)};
    return {};
  }
  if (value.size() > kMost)
    return fail(Error::bad_argument, fmt::format("{} prompts", value.size()), {}, fmt::format("at most {}", kMost));
  for (const Json& one : value) {
    if (one.is_string()) {
      call->prompts.emplace_back(one.get<std::string>());
    } else {
      KVASIR_TRY(std::vector<int> ids, as_ids(one));
      call->prompts.emplace_back(std::move(ids));
    }
  }
  return {};
}

// Variables of the template that have their own fields are refused.
Result<void> read_template_values(const Json& value, Call* call) {
  if (!value.is_object()) return fail(Error::bad_argument, shown(value) + " is no object", {}, "{}");
  for (const char* name : {"messages", "tools", "add_generation_prompt", "continue_final_message"})
    if (value.contains(name))
      return fail(Error::bad_argument, fmt::format("\"{}\" is set by its own field", name), {}, "other variables");
  for (const auto& [name, json] : value.items()) call->template_values[name] = json;
  return {};
}

Result<void> read_messages(const Json& value, Call* call) {
  if (!value.is_array() || value.empty())
    return fail(Error::bad_argument, shown(value) + " is no list of messages", {}, "an array of at least one message");
  call->messages = value;
  return {};
}

// Reads one entry of "tools". Returns null for a tool that is not a function, which is left out.
Result<Json> function_of(const Json& tool, size_t index, Call* call) {
  const std::string where = fmt::format("tools[{}]", index);
  if (!tool.is_object() || !tool.contains("type"))
    return fail(Error::bad_argument, where + " is no tool", {}, R"({"type": "function", "function": {"name": "f"}})");
  if (tool["type"] != "function") {
    call->ignored.push_back(where);
    return Json();
  }
  const Json function = tool.value("function", Json());
  const Json name = function.is_object() ? function.value("name", Json()) : Json();
  if (!name.is_string() || name == "")
    return fail(Error::bad_argument, where + ".function has no name", {}, R"({"name": "f"})");
  const Json parameters = function.value("parameters", Json());
  if (!parameters.is_null() && !parameters.is_object())
    return fail(Error::bad_argument, where + ".function.parameters is no object", {}, "a JSON schema");
  return tool;
}

Result<void> read_tools(const Json& value, Call* call) {
  if (!value.is_array()) return fail(Error::bad_argument, shown(value) + " is no list of tools", {}, "an array");
  for (size_t i = 0; i < value.size(); ++i) {
    KVASIR_TRY(Json tool, function_of(value[i], i, call));
    if (!tool.is_null()) call->tools.push_back(std::move(tool));
  }
  return {};
}

Result<void> read_tool_choice(const Json& value, Call* call) {
  call->calls_tools = value != "none";
  if (value == "none" || value == "auto") return {};
  return not_supported("only `none` and `auto` are supported: constrained answers are not supported yet");
}

Result<void> read_logit_bias(const Json& value, Call* call) {
  if (!value.is_object()) return fail(Error::bad_argument, shown(value) + " is no object", {}, R"({"15043": -1.5})");
  for (const auto& [key, bias] : value.items()) {
    const bool digits = !key.empty() && key.size() <= 9 &&
                        std::all_of(key.begin(), key.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!digits) return fail(Error::bad_argument, fmt::format("the key \"{}\" is no token id", key.substr(0, 40)));
    KVASIR_TRY(const double number, as_number(bias, -100, 100));
    call->request.options.sampling.logit_bias[std::stoi(key)] = static_cast<float>(number);
  }
  return {};
}

Result<void> read_stop(const Json& value, Call* call) {
  KVASIR_TRY(call->request.options.stop, as_strings(value, 16));
  return {};
}

Result<void> read_stream_options(const Json& value, Call* call) {
  if (!value.is_object()) return fail(Error::bad_argument, shown(value) + " is no object");
  for (const auto& [key, given] : value.items()) {
    if (given.is_null()) continue;
    if (key == "include_usage") {
      KVASIR_TRY(call->include_usage, as_bool(given));
    } else if (key == "continuous_usage_stats") {
      KVASIR_TRY(call->usage_in_all, as_bool(given));
    } else {
      call->ignored.push_back("stream_options." + key);
    }
  }
  return {};
}

Result<void> read_resume(const Json& value, Call* call) {
  auto& lists = call->request.resume;
  if (value.is_array() && !value.empty() && value[0].is_array()) {
    for (const Json& one : value) {
      KVASIR_TRY(lists.emplace_back(), as_ids(one));
    }
    return {};
  }
  KVASIR_TRY(lists.emplace_back(), as_ids(value));
  return {};
}

Result<void> read_modalities(const Json& value, Call* call) {
  (void)call;
  return value == Json::array({"text"}) ? Result<void>() : not_supported("only text answers are supported");
}

Result<void> read_format(const Json& value, Call* call) {
  (void)call;
  const bool text = value.is_object() && value.value("type", Json()) == "text";
  return text ? Result<void>()
              : not_supported("only {\"type\": \"text\"} is supported: constrained answers are not supported yet");
}

Result<void> read_samplers(const Json& value, Call* call) {
  KVASIR_TRY(call->request.options.sampling.samplers, as_strings(value, 64));
  return {};
}

Result<void> read_pooling(const Json& value, Call* call) {
  if (value != "mean" && value != "last")
    return fail(Error::bad_argument, shown(value) + " is no pooling", {}, "mean or last");
  call->request.pooling = value == "mean" ? Pooling::mean : Pooling::last;
  return {};
}

// ---- the table ----------------------------------------------------------------------------------------------------

constexpr unsigned kAnswers = kChat | kText;

std::string range_of(const SamplerParam& p) {
  return fmt::format("{} {:.16g}..{:.16g}", p.whole ? "integer" : "number", p.least, p.greatest);
}

// Removes the scope of parameters: "SamplingParams::top_p" becomes the field "top_p".
std::string plain(std::string_view summary) {
  constexpr std::string_view kScope = "SamplingParams::";
  std::string text(summary);
  for (size_t at; (at = text.find(kScope)) != std::string::npos;) text.erase(at, kScope.size());
  return text;
}

Field sampler_field(const std::string& name, const SamplerParam& param) {
  const bool is_top_k = param.name == "top_k", is_penalty = param.name == "repeat_penalty";
  const double least = is_top_k ? -1 : param.least;
  return {.name = name,
          .kinds = kAnswers,
          .type = is_top_k ? fmt::format("integer -1..{:.16g}", param.greatest) : range_of(param),
          .preset = name == param.name ? "the model's" : fmt::format("`{}`", param.name),
          .summary = name != param.name ? fmt::format("another name of `{}`", param.name)
                     : is_top_k         ? "keep this number of the most likely tokens; 0 and -1: all"
                                        : plain(param.summary),
          .read = [&param, least, is_penalty](const Json& value, Call* call) -> Result<void> {
            double number = 0;
            if (param.whole) {
              KVASIR_TRY(const int64_t whole,
                         as_integer(value, static_cast<int64_t>(least), static_cast<int64_t>(param.greatest)));
              number = static_cast<double>(whole);
            } else {
              KVASIR_TRY(number, as_number(value, least, param.greatest));
            }
            SamplingParams& sampling = call->request.options.sampling;
            if (is_penalty) sampling.repeat_last_n = SamplingParams().repeat_last_n;
            set_value(sampling, param, std::max(number, param.least));
            return {};
          }};
}

void add_sampling(std::vector<Field>* all) {
  for (const SamplerInfo& sampler : samplers())
    for (const SamplerParam& param : sampler.params) {
      if (param.name == "repeat_penalty") all->push_back(sampler_field("repetition_penalty", param));
      all->push_back(sampler_field(std::string(param.name), param));
    }
  all->push_back({"logit_bias", kAnswers, "object of numbers -100..100", "{}",
                  "added to the logits of these token ids; -100 bans a token", read_logit_bias});
  all->push_back(
      {"samplers", kAnswers, "array of strings", "all", "the samplers to run, in this order", read_samplers});
  all->push_back({"seed", kAnswers, "64-bit integer", "drawn",
                  "the same seed gives the same answer; `kvasir.seed` reports it",
                  into(INT64_MIN, INT64_MAX, [](Call* c, int64_t v) {
                    c->request.options.sampling.seed = static_cast<uint64_t>(v);
                    c->seeded = true;
                  })});
}

void add_prompts(std::vector<Field>* all) {
  all->push_back(
      {"model", kAnyKind, "string", "the first model",
       "any name is accepted, and the answer reports the model used; a server with strict model names refuses others",
       into([](Call* c, std::string v) { c->model = std::move(v); })});
  all->push_back(
      {"messages", kChat, "array", "required", "`role` and `content`; parts of kind `text` only", read_messages});
  all->push_back({"prompt", kText, "string, strings, ids, or arrays of ids", "required",
                  "each prompt gives `n` choices", read_prompts});
  all->push_back({"input", kEmbeddings, "string, strings, ids, or arrays of ids", "required", "each gives one vector",
                  read_prompts});
  all->push_back({"add_generation_prompt", kChat, "boolean", "true", "begin a new turn of the assistant",
                  into([](Call* c, bool v) { c->add_turn = v; })});
  all->push_back({"continue_final_message", kChat, "boolean", "false",
                  "the last message is incomplete, and the answer continues it",
                  into([](Call* c, bool v) { c->goes_on = v; })});
  all->push_back({"resume_token_ids", kAnswers, "ids, or ids for each choice", "none",
                  "tokens of this answer that any server generated before; the answer continues after them",
                  read_resume});
}

void add_ends(std::vector<Field>* all) {
  all->push_back({"max_tokens", kAnswers, "integer, 0 or more", "to the context's end",
                  "with 0, the prompt is computed and cached, and nothing is generated", read_max_tokens});
  all->push_back({"max_completion_tokens", kAnswers, "integer, 0 or more", "`max_tokens`",
                  "the same; overrides `max_tokens`", read_max_tokens});
  all->push_back({"min_tokens", kAnswers, "integer, 0 or more", "0",
                  "no token ends the answer before this number of tokens",
                  into(0, INT_MAX, [](Call* c, int64_t v) { c->request.options.min_tokens = static_cast<int>(v); })});
  all->push_back({"stop", kAnswers, "string, or up to 16", "none",
                  "the answer ends before the first occurrence of one of these texts", read_stop});
  all->push_back({"stop_token_ids", kAnswers, "array of ids", "none",
                  "these tokens end the answer like the model's own end-of-text token",
                  [](const Json& v, Call* c) -> Result<void> {
                    KVASIR_TRY(c->request.options.stop_ids, as_ids(v));
                    return {};
                  }});
  all->push_back({"ignore_eos", kAnswers, "boolean", "false", "the model's end-of-text token does not end the answer",
                  into([](Call* c, bool v) { c->request.options.ignore_eos = v; })});
  all->push_back({"include_stop_str_in_output", kAnswers, "boolean", "false",
                  "the text includes the stop that ended it",
                  into([](Call* c, bool v) { c->request.options.include_stop = v; })});
}

void add_answers(std::vector<Field>* all) {
  all->push_back({"n", kAnswers, "integer 1..16", "1", "number of choices; choice i is the same for every `n`",
                  into(1, 16, [](Call* c, int64_t v) { c->request.choices = static_cast<int>(v); })});
  all->push_back({"best_of", kText, "integer", "`n`", "must equal `n`",
                  into(1, 16, [](Call* c, int64_t v) { c->best_of = static_cast<int>(v); })});
  all->push_back({"stream", kAnswers, "boolean", "false",
                  "server-sent events, one chunk per token while the reader keeps up",
                  into([](Call* c, bool v) { c->stream = v; })});
  all->push_back({"stream_options", kAnswers, "object", "{}",
                  "`include_usage`: a last chunk with the usage; `continuous_usage_stats`: the usage in every chunk",
                  read_stream_options});
  all->push_back({"logprobs", kChat, "boolean", "false", "log probabilities of the raw logits, before any sampler",
                  into([](Call* c, bool v) { c->logprobs = v; })});
  all->push_back({"top_logprobs", kChat, "integer 0..20", "0",
                  "with `logprobs`: number of likeliest tokens to report as well",
                  into(0, 20, [](Call* c, int64_t v) { c->top_logprobs = static_cast<int>(v); })});
  all->push_back({"logprobs", kText, "integer 0..5", "none",
                  "log probabilities of the raw logits, for the token and this number of likeliest tokens",
                  into(0, 5, [](Call* c, int64_t v) { c->request.options.logprobs = static_cast<int>(v); })});
  all->push_back({"return_token_ids", kAnswers, "boolean", "false",
                  "adds `token_ids` and `prompt_token_ids` to each choice",
                  into([](Call* c, bool v) { c->return_ids = v; })});
  all->push_back({"receipt", kAnswers, "boolean", "false", "adds the proof of what was computed as `kvasir.receipt`",
                  into([](Call* c, bool v) { c->request.options.receipt = v; })});
  all->push_back(
      {"lookup", kAnswers, "integer 0..64", "0",
       "upper bound on tokens drafted per pass from earlier text; they are verified, so the answer is the same",
       into(0, 64, [](Call* c, int64_t v) { c->request.options.lookup = static_cast<int>(v); })});
  all->push_back({"encoding_format", kEmbeddings, "`float`, `base64`", "`float`",
                  "base64: 32-bit floats, least significant byte first", [](const Json& v, Call* c) -> Result<void> {
                    if (v != "float" && v != "base64")
                      return fail(Error::bad_argument, shown(v) + " is no format", {}, "float or base64");
                    c->base64 = v == "base64";
                    return {};
                  }});
  all->push_back({"dimensions", kEmbeddings, "integer", "the model's", "must equal the model's",
                  into(1, INT_MAX, [](Call* c, int64_t v) { c->dimensions = static_cast<int>(v); })});
  all->push_back({"pooling", kEmbeddings, "`mean`, `last`", "`mean`",
                  "pooling of the final states; the result is L2-normalised", read_pooling});
}

void add_scheduling(std::vector<Field>* all) {
  all->push_back({"priority", kAnyKind, "integer", "0", "among the requests of one API key, larger values run first",
                  into(-1000000, 1000000, [](Call* c, int64_t v) { c->request.priority = static_cast<int>(v); })});
  all->push_back(
      {"timeout_ms", kAnyKind, "integer, 0 or more", "0",
       "an answer that is not complete by then ends with `deadline_exceeded`; 0: no limit",
       into(0, INT64_MAX / 2, [](Call* c, int64_t v) { c->request.timeout_s = static_cast<double>(v) / 1e3; })});
  all->push_back({"cache_prompt", kAnyKind, "boolean", "true",
                  "with false, no cached text is reused, and none is stored",
                  into([](Call* c, bool v) { c->request.reuse = v; })});
  all->push_back({"cache_salt", kAnyKind, "string", "\"\"", "text cached under one salt is not reused under another",
                  into([](Call* c, std::string v) { c->request.salt = std::move(v); })});
}

void add_others(std::vector<Field>* all) {
  const auto refused = [&](const char* name, unsigned kinds, const char* what) {
    all->push_back({name, kinds, "absent or empty", "", "", only(nothing_in, what)});
  };
  all->push_back({"response_format", kChat, "`{\"type\": \"text\"}`", "text", "", read_format});
  all->push_back({"tools", kChat, "array", "none",
                  "functions that the answer may call; tools of other types are left out and listed in `ignored`",
                  read_tools});
  all->push_back({"tool_choice", kChat, "`none`, `auto`", "`auto`",
                  "with `none`, calls are returned as text; the prompt is the same", read_tool_choice});
  all->push_back({"parallel_tool_calls", kChat, "boolean", "true", "with false, the answer ends after its first call",
                  into([](Call* c, bool v) { c->one_call = !v; })});
  refused("functions", kChat, "it is not supported; tools are");
  refused("function_call", kChat, "it is not supported; tools are");
  all->push_back({"reasoning_effort", kChat, "string", "", "sets the chat template's variable of this name",
                  into([](Call* c, std::string v) { c->template_values["reasoning_effort"] = std::move(v); })});
  all->push_back({"chat_template_kwargs", kChat, "object", "{}",
                  "further variables of the chat template, such as `enable_thinking`", read_template_values});
  refused("grammar", kAnswers, "constrained answers are not supported yet");
  refused("json_schema", kAnswers, "constrained answers are not supported yet");
  refused("structured_outputs", kAnswers, "constrained answers are not supported yet");
  refused("web_search_options", kChat, "web search is not supported");
  refused("audio", kChat, "only text answers are supported");
  refused("echo", kText, "repeating the prompt in the answer is not supported");
  refused("suffix", kText, "inserting text before a suffix is not supported");
  all->push_back({"modalities", kChat, "`[\"text\"]`", "", "", read_modalities});
  for (const char* name : {"user", "safety_identifier", "prompt_cache_key", "prompt_cache_retention", "store",
                           "metadata", "service_tier", "prediction", "verbosity"})
    all->push_back({name, kAnyKind, "any", "", "changes nothing"});
}

std::vector<Field> make_fields() {
  std::vector<Field> all;
  add_prompts(&all);
  add_ends(&all);
  add_sampling(&all);
  add_answers(&all);
  add_scheduling(&all);
  add_others(&all);
  return all;
}

// ---- reading ------------------------------------------------------------------------------------------------------

Error named(Error error, const std::string& field) {
  error.where = field;
  return error;
}

Result<void> check_required(const Call& call) {
  if (call.kind == kChat ? call.messages.is_null() : call.prompts.empty()) {
    const char* name = call.kind == kChat ? "messages" : call.kind == kText ? "prompt" : "input";
    return fail(Error::bad_argument, "it is missing", name);
  }
  return {};
}

// Checks and combines fields that depend on each other.
Result<void> settle(Call* call) {
  KVASIR_CHECK(check_required(*call));
  if (call->logprobs) call->request.options.logprobs = call->top_logprobs;
  if (!call->logprobs && call->top_logprobs > 0)
    return fail(Error::bad_argument, "it needs `logprobs`", "top_logprobs", "\"logprobs\": true");
  if (call->best_of && *call->best_of != call->request.choices)
    return fail(Error::unsupported, fmt::format("{} of {} choices", call->request.choices, *call->best_of), "best_of",
                "the same as n");
  if (!call->request.resume.empty() && call->prompts.size() > 1)
    return fail(Error::bad_argument, "it is for one prompt", "resume_token_ids");
  if (call->kind == kEmbeddings && !call->request.pooling) call->request.pooling = Pooling::mean;
  return {};
}

}  // namespace

const std::vector<Field>& fields() {
  static const std::vector<Field> all = make_fields();
  return all;
}

Result<Call> read_call(Kind kind, const Json& body, const SamplingParams& defaults, bool strict) {
  if (!body.is_object()) return fail(Error::bad_argument, "the body is not a JSON object", "body");
  Call call{.kind = kind};
  call.request.options.sampling = defaults;
  constexpr size_t kMostNamed = 16;
  std::vector<std::string> known;
  for (const Field& field : fields()) {
    if ((field.kinds & kind) == 0) continue;
    known.push_back(field.name);
    const auto found = body.find(field.name);
    if (found == body.end() || found->is_null()) continue;
    if (!field.read) {
      call.ignored.push_back(field.name);
    } else if (auto done = field.read(*found, &call); !done) {
      return tl::unexpected(named(std::move(done).error(), field.name));
    }
  }
  for (const auto& [key, value] : body.items()) {
    if (value.is_null() || std::find(known.begin(), known.end(), key) != known.end()) continue;
    const std::string name = key.substr(0, 64);
    if (strict) return fail(Error::unsupported, "the field is not known", name);
    if (call.ignored.size() < kMostNamed) call.ignored.push_back(name);
  }
  KVASIR_CHECK(settle(&call));
  call.client_stops = call.request.options.stop;
  return call;
}

std::string fields_table() {
  const auto kinds = [](unsigned k) {
    std::string text;
    for (const auto& [bit, name] :
         {std::pair(kChat, "chat"), std::pair(kText, "text"), std::pair(kEmbeddings, "embeddings")})
      if ((k & bit) != 0) text += (text.empty() ? "" : ", ") + std::string(name);
    return k == kAnyKind ? std::string("all") : text;
  };
  std::string table = "| field | of | value | default | |\n|---|---|---|---|---|\n";
  for (const Field& f : fields())
    table += fmt::format("| `{}` | {} | {} | {} | {} |\n", f.name, kinds(f.kinds), f.type, f.preset,
                         f.summary.empty() ? "anything else is refused" : f.summary);
  return table;
}

}  // namespace kvasir::serve
