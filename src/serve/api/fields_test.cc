// Tests the fields of requests, the rendering of messages, the form of errors, and the table in the documentation.
#include "serve/api/fields.h"

#include <cstdlib>

#include <gmock/gmock.h>

#include "serve/api/errors.h"
#include "serve/api/prompts.h"
#include "tests/support/temp_files.h"

namespace kvasir::serve {
namespace {

using namespace format_test;

using testing::ElementsAre;
using testing::HasSubstr;

SamplingParams defaults() { return {.temperature = 0.3, .repeat_penalty = 1.1, .repeat_last_n = -1}; }

Result<Call> read(Kind kind, const std::string& body, bool strict = false) {
  return read_call(kind, *parse_json(body), defaults(), strict);
}

// Reads a completion call with these fields added.
Call with(const std::string& fields) {
  auto call = read(kText, R"({"prompt": "a", )" + fields + "}");
  EXPECT_TRUE(call) << fields << ": " << call.error().message();
  return call ? *call : Call{};
}

TEST(ServeFields, WhatIsAbsentIsTheModelsOrOurs) {
  const Call call = with(R"("seed": null)");
  EXPECT_EQ(call.request.options.sampling.temperature, 0.3);
  EXPECT_EQ(call.request.options.sampling.repeat_last_n, -1);
  EXPECT_EQ(call.request.options.max_tokens, -1);
  EXPECT_EQ(call.request.choices, 1);
  EXPECT_FALSE(call.seeded || call.stream || call.nothing || call.include_usage);
  EXPECT_TRUE(call.request.reuse);
  EXPECT_EQ(call.request.options.logprobs, -1);
}

TEST(ServeFields, EveryFieldReachesItsPlace) {
  const Call c = with(R"("temperature": 1.5, "top_p": 0.5, "top_k": -1, "min_p": 0.2, "repetition_penalty": 1.3,
      "presence_penalty": -2, "frequency_penalty": 2, "seed": -5, "logit_bias": {"7": -100, "8": 1.5}, "n": 3, "best_of": 3,
      "max_tokens": 9, "max_completion_tokens": 8, "min_tokens": 2, "stop": ["x", "y"], "stop_token_ids": [4, 5],
      "ignore_eos": true, "stream": true, "stream_options": {"include_usage": true, "continuous_usage_stats": true},
      "logprobs": 4, "receipt": true, "return_token_ids": true, "lookup": 6, "priority": -3, "timeout_ms": 1500,
      "cache_prompt": false, "cache_salt": "s", "resume_token_ids": [[1, 2], [], [3]], "samplers": ["top_k"], "model": "m")");
  const GenerateOptions& o = c.request.options;
  EXPECT_EQ(o.sampling.temperature, 1.5);
  EXPECT_EQ(o.sampling.top_p, 0.5);
  EXPECT_EQ(o.sampling.top_k, 0) << "-1 is off";
  EXPECT_EQ(o.sampling.min_p, 0.2);
  EXPECT_EQ(o.sampling.repeat_penalty, 1.3);
  EXPECT_EQ(o.sampling.repeat_last_n, 64) << "all is the model's own penalty's";
  EXPECT_EQ(o.sampling.presence_penalty, -2);
  EXPECT_EQ(o.sampling.frequency_penalty, 2);
  EXPECT_EQ(static_cast<int64_t>(o.sampling.seed), -5);
  EXPECT_EQ(o.sampling.logit_bias, (std::map<int, float>{{7, -100.f}, {8, 1.5f}}));
  EXPECT_THAT(o.sampling.samplers, ElementsAre("top_k"));
  EXPECT_EQ(c.request.choices, 3);
  EXPECT_EQ(o.max_tokens, 8) << "max_completion_tokens wins";
  EXPECT_EQ(o.min_tokens, 2);
  EXPECT_THAT(o.stop, ElementsAre("x", "y"));
  EXPECT_THAT(o.stop_ids, ElementsAre(4, 5));
  EXPECT_TRUE(o.ignore_eos && c.stream && c.include_usage && c.usage_in_all && o.receipt && c.return_ids && c.seeded);
  EXPECT_EQ(o.logprobs, 4);
  EXPECT_EQ(o.lookup, 6);
  EXPECT_EQ(c.request.priority, -3);
  EXPECT_EQ(c.request.timeout_s, 1.5);
  EXPECT_FALSE(c.request.reuse);
  EXPECT_EQ(c.request.salt, "s");
  EXPECT_EQ(c.request.resume, (std::vector<std::vector<int>>{{1, 2}, {}, {3}}));
  EXPECT_EQ(c.model, "m");
}

TEST(ServeFields, NothingWantedOrMoreThanThereIs) {
  EXPECT_TRUE(with(R"("max_tokens": 0)").nothing);
  EXPECT_EQ(with(R"("max_tokens": 0)").request.options.max_tokens, 1);
  EXPECT_FALSE(with(R"("max_tokens": 0, "max_completion_tokens": 5)").nothing);
  EXPECT_EQ(with(R"("max_tokens": 1000000000000)").request.options.max_tokens, INT_MAX);
  EXPECT_EQ(with(R"("max_tokens": 3.0)").request.options.max_tokens, 3);
}

TEST(ServeFields, PromptsInEveryForm) {
  const auto prompts = [](const std::string& value) { return read(kText, R"({"prompt": )" + value + "}")->prompts; };
  EXPECT_THAT(prompts(R"("a")"), ElementsAre(Prompt("a")));
  EXPECT_THAT(prompts(R"(["a", "b"])"), ElementsAre(Prompt("a"), Prompt("b")));
  EXPECT_THAT(prompts("[1, 2]"), ElementsAre(Prompt(std::vector{1, 2})));
  EXPECT_THAT(prompts(R"([[1], [2, 3], "c"])"),
              ElementsAre(Prompt(std::vector{1}), Prompt(std::vector{2, 3}), Prompt("c")));
}

TEST(ServeFields, LogprobsOfAChat) {
  const auto chat = [](const std::string& fields) {
    return read(kChat, R"({"messages": [{"role": "user", "content": "a"}], )" + fields + "}");
  };
  EXPECT_EQ(chat(R"("logprobs": true)")->request.options.logprobs, 0);
  EXPECT_EQ(chat(R"("logprobs": true, "top_logprobs": 20)")->request.options.logprobs, 20);
  EXPECT_EQ(chat(R"("logprobs": false)")->request.options.logprobs, -1);
  EXPECT_EQ(chat(R"("top_logprobs": 3)").error().where, "top_logprobs");
}

struct Bad {
  const char* field;
  const char* value;
  Error::Kind kind = Error::bad_argument;
};

class ServeBadFields : public testing::TestWithParam<Bad> {};

TEST_P(ServeBadFields, AreRefusedByName) {
  const auto [field, value, kind] = GetParam();
  const Kind call = std::string(field) == "input" || std::string(field) == "dimensions" ? kEmbeddings
                    : std::string(field).starts_with("tool") || std::string(field) == "response_format" ||
                            std::string(field) == "messages" || std::string(field) == "modalities"
                        ? kChat
                        : kText;
  Json body = {{"prompt", "a"}, {"input", "a"}, {"messages", {{{"role", "user"}, {"content", "a"}}}}};
  body[field] = *parse_json(value);
  const auto result = read_call(call, body, defaults(), false);
  ASSERT_FALSE(result) << field << " = " << value;
  EXPECT_EQ(result.error().where, field);
  EXPECT_EQ(result.error().kind, kind) << result.error().message();
  const ApiError error = api_error(result.error());
  EXPECT_EQ(error.status, 400);
  EXPECT_EQ(error.param, field);
}

INSTANTIATE_TEST_SUITE_P(
    Each, ServeBadFields,
    testing::Values(Bad{"temperature", "-0.1"}, Bad{"temperature", "\"hot\""}, Bad{"temperature", "1e9"},
                    Bad{"top_k", "-2"}, Bad{"top_k", "1.5"}, Bad{"top_p", "1.01"}, Bad{"n", "0"}, Bad{"n", "17"},
                    Bad{"n", "true"}, Bad{"max_tokens", "-1"}, Bad{"max_tokens", "\"9\""}, Bad{"stop", "[1]"},
                    Bad{"stop", "7"}, Bad{"stop_token_ids", "[-1]"}, Bad{"stop_token_ids", "3"},
                    Bad{"logit_bias", "[1]"}, Bad{"logit_bias", R"({"x": 1})"}, Bad{"logit_bias", R"({"1": 101})"},
                    Bad{"logit_bias", R"({"99999999999": 1})"}, Bad{"seed", "1.5"}, Bad{"seed", "9223372036854775808"},
                    Bad{"stream", "1"}, Bad{"stream_options", "true"}, Bad{"logprobs", "6"}, Bad{"logprobs", "true"},
                    Bad{"lookup", "65"}, Bad{"timeout_ms", "-1"}, Bad{"cache_salt", "1"},
                    Bad{"resume_token_ids", "\"a\""}, Bad{"resume_token_ids", "[[1], 2]"}, Bad{"prompt", "{}"},
                    Bad{"prompt", "[]"}, Bad{"prompt", "[1, \"a\"]"}, Bad{"prompt", "7"}, Bad{"input", "[[\"a\"]]"},
                    Bad{"messages", "[]"}, Bad{"messages", "\"a\""}, Bad{"dimensions", "0"},
                    Bad{"best_of", "2", Error::unsupported}, Bad{"echo", "true", Error::unsupported},
                    Bad{"suffix", "\"a\"", Error::unsupported}, Bad{"grammar", "\"root ::= x\"", Error::unsupported},
                    Bad{"tools", "[{}]"}, Bad{"tools", R"([{"type": "function", "function": {}}])"},
                    Bad{"tool_choice", "\"required\"", Error::unsupported},
                    Bad{"modalities", R"(["audio"])", Error::unsupported},
                    Bad{"response_format", R"({"type": "json_object"})", Error::unsupported},
                    Bad{"include_stop_str_in_output", "1"}));

TEST(ServeFields, WhatIsMissingIsNamed) {
  EXPECT_EQ(read(kText, "{}").error().where, "prompt");
  EXPECT_EQ(read(kChat, R"({"messages": null})").error().where, "messages");
  EXPECT_EQ(read(kEmbeddings, "{}").error().where, "input");
  EXPECT_EQ(read(kText, "[]").error().where, "body");
}

TEST(ServeFields, ToolsOfOtherTypesAreLeftOut) {
  const auto call = read(kChat, R"({"messages": [{}], "tool_choice": "none", "parallel_tool_calls": false, "tools": [
      {"type": "web_search"}, {"type": "function", "function": {"name": "f"}}]})");
  ASSERT_TRUE(call) << call.error().message();
  EXPECT_EQ(call->tools.size(), 1u);
  EXPECT_THAT(call->ignored, ElementsAre("tools[0]"));
  EXPECT_FALSE(call->calls_tools);
  EXPECT_TRUE(call->one_call);
}

TEST(ServeFields, UnknownOnesAreNamedOrRefused) {
  const Call call = with(R"("user": "u", "store": true, "x_new": 1, "echo": false, "tools": [])");
  EXPECT_THAT(call.ignored, ElementsAre("user", "store", "x_new", "tools")) << "tools are the chat's";
  const auto strict = read(kText, R"({"prompt": "a", "user": "u", "x_new": 1})", true);
  ASSERT_FALSE(strict);
  EXPECT_EQ(strict.error().where, "x_new");
  EXPECT_TRUE(read(kText, R"({"prompt": "a", "user": "u", "x_new": null})", true));
}

// ---- conversations by a template -----------------------------------------------------------------------------------

Result<ChatText> by_template(std::string_view jinja, const std::string& fields) {
  const auto call = read(kChat, R"({"messages": [{"role": "user", "content": "hi"}], )" + fields + "}");
  EXPECT_TRUE(call) << call.error().message();
  ChatFormat format;
  format.chat_template = *ChatTemplate::parse(jinja);
  std::vector<std::string> stops;
  auto text = render_conversation(*call, format, &stops);
  EXPECT_THAT(stops, ElementsAre());
  return text;
}

TEST(ServeTemplate, AConversationAndWhatTheTemplateIsTold) {
  constexpr const char* kTurns =
      "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
      "{% if add_generation_prompt %}<assistant>{% endif %}";
  const auto text = by_template(kTurns, R"("n": 1)");
  ASSERT_TRUE(text);
  EXPECT_EQ(text->text, "<user>hi<assistant>");
  EXPECT_THAT(text->data, ElementsAre(TextSpan{6, 8}));
  EXPECT_EQ(by_template(kTurns, R"("add_generation_prompt": false)")->text, "<user>hi");
  EXPECT_EQ(by_template("{{ enable_thinking }} {{ reasoning_effort }}",
                        R"("chat_template_kwargs": {"enable_thinking": false}, "reasoning_effort": "low")")
                ->text,
            "False low");
}

TEST(ServeTemplate, PlainTurnsTakeNoVariables) {
  const auto where = [](const std::string& fields) {
    const auto call = read(kChat, R"({"messages": [{"role": "user", "content": "hi"}], )" + fields + "}");
    std::vector<std::string> stops;
    const auto text = render_conversation(*call, {.chat_template = {}, .is_plain = true, .why_none = {}}, &stops);
    return text ? "none" : text.error().where;
  };
  EXPECT_EQ(where(R"("n": 1)"), "none");
  EXPECT_EQ(where(R"("reasoning_effort": "low")"), "reasoning_effort");
  EXPECT_EQ(where(R"("chat_template_kwargs": {"x": 1})"), "chat_template_kwargs");
}

TEST(ServeTemplate, ItsErrorsAreTheMessages) {
  const Error raised = by_template("{{ raise_exception('no users') }}", R"("n": 1)").error();
  EXPECT_EQ(raised.what, "no users");
  EXPECT_EQ(raised.where, "messages");
  const Error failed = by_template("\n{{ x.y }}", R"("n": 1)").error();
  EXPECT_EQ(failed.what, "the chat template, line 2: 'x' is undefined");
  EXPECT_EQ(failed.where, "messages");
  EXPECT_FALSE(read(kChat, R"({"messages": [{}], "chat_template_kwargs": {"messages": []}})"));
}

// ---- messages -----------------------------------------------------------------------------------------------------

Result<std::string> rendered(const std::string& messages, bool add_turn = true, bool goes_on = false) {
  std::vector<std::string> stops;
  auto text = render_plain(*parse_json(messages), add_turn, goes_on, &stops);
  if (text) {
    EXPECT_THAT(stops, ElementsAre("\nUser:"));
  }
  return text;
}

TEST(ServePlainChat, TurnsAsTheCommandLineHasThem) {
  EXPECT_EQ(*rendered(R"([{"role": "user", "content": "Hi"}])"), "User: Hi\nAssistant:");
  EXPECT_EQ(*rendered(R"([{"role": "developer", "content": "Be kind."}, {"role": "user", "content": "Hi"},
      {"role": "assistant", "content": " Yes?"}, {"role": "user", "content": [{"type": "text", "text": "a"},
      {"type": "text", "text": "b"}]}])"),
            "Be kind.\nUser: Hi\nAssistant: Yes?\nUser: ab\nAssistant:");
}

TEST(ServePlainChat, AnAnswersFirstSpaceMayHaveBeenLost) {
  const char* const kept = R"([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": " Yes"}])";
  const char* const lost = R"([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes"}])";
  EXPECT_EQ(*rendered(kept), *rendered(lost));
  EXPECT_EQ(*rendered(lost, true, true), "User: Hi\nAssistant: Yes");
  EXPECT_EQ(*rendered(lost, false), "User: Hi\nAssistant: Yes");
}

TEST(ServePlainChat, WhatHasNoPlaceIsRefusedByItsIndex) {
  const auto where = [](const std::string& messages) { return rendered(messages).error().where; };
  EXPECT_EQ(where(R"([{"role": "user", "content": "a"}, {"role": "tool", "content": "b"}])"), "messages[1].role");
  EXPECT_EQ(where(R"([{"content": "a"}])"), "messages[0]");
  EXPECT_EQ(where(R"([{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image_url"}]}])"),
            "messages[0].content[1]");
  EXPECT_EQ(where(R"([{"role": "assistant", "content": null, "tool_calls": [{}]}])"), "messages[0].tool_calls");
  EXPECT_EQ(where(R"([{"role": "user", "content": 7}])"), "messages[0].content");
  EXPECT_EQ(rendered(R"([{"role": "user", "content": "a"}])", true, true).error().where, "continue_final_message");
}

// ---- errors -------------------------------------------------------------------------------------------------------

TEST(ServeErrors, StatusesByKind) {
  const auto of = [](Error::Kind kind) {
    const ApiError e = api_error(Error{kind, "what", "GenerateOptions::max_tokens", "SessionOptions::ctx"});
    return std::pair(e.status, e.code);
  };
  EXPECT_EQ(of(Error::bad_argument), std::pair(400, std::string("invalid_value")));
  EXPECT_EQ(of(Error::too_long), std::pair(400, std::string("context_length_exceeded")));
  EXPECT_EQ(of(Error::busy), std::pair(429, std::string("queue_full")));
  EXPECT_EQ(of(Error::closing), std::pair(503, std::string("draining")));
  EXPECT_EQ(of(Error::timed_out), std::pair(504, std::string("deadline_exceeded")));
  EXPECT_EQ(of(Error::not_finite), std::pair(500, std::string("non_finite_logits")));
}

TEST(ServeErrors, AsOpenAIsClientsReadThem) {
  const Json e = error_json(too_long(128, 130))["error"];
  EXPECT_THAT(e["message"].get<std::string>(),
              HasSubstr("This model's maximum context length is 128 tokens. However, your prompt has 130 tokens."));
  EXPECT_THAT(e["message"].get<std::string>(), HasSubstr("exceeds the available context size"));
  EXPECT_EQ(e["type"], "invalid_request_error");
  EXPECT_EQ(e["n_prompt_tokens"], 130);
  EXPECT_EQ(e["n_ctx"], 128);
  const Json plain = error_json(api_error(Error{Error::busy, "full", "SchedulerOptions::max_queue", ""}))["error"];
  EXPECT_EQ(plain["type"], "rate_limit_error");
  EXPECT_TRUE(plain["param"].is_null());
  EXPECT_THAT(error_answer(api_error(Error{Error::busy, "", "", ""})).headers,
              testing::Contains(testing::Pair("Retry-After", "1")));
}

// ---- the documentation --------------------------------------------------------------------------------------------

TEST(ServeFields, TheDocumentationHasTheTable) {
  const std::string path = KVASIR_SOURCE_DIR "/docs/api-http.md";
  const std::string begin = "<!-- fields -->\n", end = "<!-- end -->";
  std::string text = slurp(path);
  const size_t from = text.find(begin), to = text.find(end);
  ASSERT_NE(from, text.npos);
  ASSERT_NE(to, text.npos);
  const size_t first = from + begin.size();
  if (std::getenv("KVASIR_WRITE_DOCS") != nullptr) {
    text.replace(first, to - first, fields_table());
    put(path, text);
    return;
  }
  EXPECT_EQ(text.substr(first, to - first), fields_table()) << "KVASIR_WRITE_DOCS=1 writes it";
}

}  // namespace
}  // namespace kvasir::serve
