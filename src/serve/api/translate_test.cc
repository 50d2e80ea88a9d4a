// Tests the translation of other APIs' requests into chat completions.
#include "serve/api/translate.h"

#include <gmock/gmock.h>

namespace kvasir::serve {
namespace {

using testing::ElementsAre;

Json of_messages(const char* body) {
  const auto out = translate_messages(*parse_json(body), false);
  return out ? out->body : Json(out.error().where + ": " + out.error().what);
}

Json of_responses(const char* body) {
  const auto out = translate_responses(*parse_json(body));
  return out ? out->body : Json(out.error().where + ": " + out.error().what);
}

TEST(ServeMessages, AnAgentsConversation) {
  const Json body = of_messages(R"({"model": "m", "max_tokens": 9, "temperature": 0.5, "top_k": 3, "seed": 7,
    "system": [{"type": "text", "text": "x-anthropic-billing-header: 1"}, {"type": "text", "text": "Be kind."}],
    "messages": [
      {"role": "user", "content": "a"},
      {"role": "assistant", "content": [{"type": "thinking", "thinking": "t", "signature": ""},
        {"type": "text", "text": "b"}, {"type": "tool_use", "id": "c1", "name": "f", "input": {"z": 1, "a": 2}}]},
      {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "r"}]},
        {"type": "text", "text": "d", "cache_control": {"type": "ephemeral"}}]}],
    "tools": [{"name": "f", "description": "D", "input_schema": {"type": "object"}}, {"type": "web_search_20250305"}],
    "tool_choice": {"type": "auto", "disable_parallel_tool_use": true},
    "stop_sequences": ["x"], "thinking": {"type": "enabled", "budget_tokens": 5}})");
  EXPECT_EQ(body["messages"],
            *parse_json(R"([{"role": "system", "content": "Be kind."}, {"role": "user", "content": "a"},
    {"role": "assistant", "content": "b", "reasoning_content": "t", "tool_calls": [{"id": "c1", "type": "function",
      "function": {"name": "f", "arguments": {"z": 1, "a": 2}}}]},
    {"role": "tool", "tool_call_id": "c1", "content": "r"}, {"role": "user", "content": "d"}])"));
  EXPECT_EQ(body["tools"], *parse_json(R"([{"type": "function", "function": {"name": "f", "description": "D",
    "parameters": {"type": "object"}}}])"));
  EXPECT_EQ(body["tool_choice"], "auto");
  EXPECT_EQ(body["parallel_tool_calls"], false);
  EXPECT_EQ(body["stop"], Json::array({"x"}));
  EXPECT_EQ(body["chat_template_kwargs"]["enable_thinking"], true);
  EXPECT_EQ(body["max_tokens"], 9);
  EXPECT_EQ(body["top_k"], 3);
  EXPECT_EQ(body["seed"], 7);
  EXPECT_FALSE(body.contains("continue_final_message") || body.contains("system"));
}

TEST(ServeMessages, WhatChangesNothingIsNamed) {
  const auto out = translate_messages(*parse_json(R"({"max_tokens": 1, "messages": [{"role": "user", "content": "a"}],
    "system": [{"type": "text", "text": "x-anthropic-billing-header: 1"}], "tools": [{"type": "bash_20250124"}]})"),
                                      false);
  ASSERT_TRUE(out);
  EXPECT_THAT(out->ignored, ElementsAre("system: x-anthropic-billing-header", "tools[0]"));
}

TEST(ServeMessages, ABegunAnswerGoesOn) {
  EXPECT_EQ(of_messages(R"({"max_tokens": 1, "messages": [{"role": "user", "content": "a"},
    {"role": "assistant", "content": "b"}]})")["continue_final_message"],
            true);
}

TEST(ServeMessages, ErrorsNameTheirPlace) {
  EXPECT_EQ(of_messages(R"({"messages": [{"role": "user", "content": "a"}]})"), "max_tokens: it is missing");
  EXPECT_TRUE(translate_messages(*parse_json(R"({"messages": [{"role": "user", "content": "a"}]})"), true));
  const auto where = [](const char* messages) {
    const auto out = translate_messages({{"max_tokens", 1}, {"messages", *parse_json(messages)}}, false);
    return out ? "" : out.error().where;
  };
  EXPECT_EQ(where("[]"), "messages");
  EXPECT_EQ(where(R"([{"role": "robot"}])"), "messages[0].role");
  EXPECT_EQ(where(R"([{"role": "user", "content": 7}])"), "messages[0].content");
  EXPECT_EQ(where(R"([{"role": "user", "content": [{"type": "image"}]}])"), "messages[0].content[0]");
  EXPECT_EQ(where(R"([{"role": "user", "content": [7]}])"), "messages[0].content[0]");
  EXPECT_EQ(where(R"([{"role": "user", "content": [{"type": "tool_result", "content": [{"type": "image"}]}]}])"),
            "messages[0].content[0].content[0]");
  EXPECT_EQ(where(R"([{"role": "assistant", "content": [{"type": "tool_use"}]}])"), "messages[0].content[0].name");
}

TEST(ServeResponses, ItemsBecomeMessages) {
  const Json body = of_responses(R"({"instructions": "Be kind.", "max_output_tokens": 5, "reasoning": {"effort": "low"},
    "input": [{"role": "user", "content": [{"type": "input_text", "text": "a"}]},
      {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "t"}]},
      {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "b"}]},
      {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{\"z\":1}"},
      {"type": "function_call", "call_id": "c2", "name": "g", "arguments": "{}"},
      {"type": "function_call_output", "call_id": "c1", "output": "r"},
      {"type": "function_call", "call_id": "c3", "name": "h", "arguments": "{}"}],
    "tools": [{"type": "function", "name": "f", "parameters": {}, "strict": true}, {"type": "file_search"}]})");
  EXPECT_EQ(body["messages"],
            *parse_json(R"([{"role": "system", "content": "Be kind."}, {"role": "user", "content": "a"},
    {"role": "assistant", "content": "b", "reasoning_content": "t", "tool_calls": [
      {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"z\":1}"}},
      {"id": "c2", "type": "function", "function": {"name": "g", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "c1", "content": "r"},
    {"role": "assistant", "content": "", "tool_calls": [
      {"id": "c3", "type": "function", "function": {"name": "h", "arguments": "{}"}}]}])"));
  EXPECT_EQ(body["tools"].size(), 1u);
  EXPECT_EQ(body["max_tokens"], 5);
  EXPECT_EQ(body["reasoning_effort"], "low");
}

TEST(ServeResponses, ErrorsNameTheirPlace) {
  EXPECT_EQ(of_responses(R"({"input": "a", "previous_response_id": "r"})"),
            "previous_response_id: this server stores no answers");
  EXPECT_EQ(of_responses(R"({"input": "a", "background": true})"), "background: an answer ends with its connection");
  EXPECT_EQ(of_responses(R"({"input": [{"type": "item_reference"}]})"),
            "input[0]: items of type \"item_reference\" are not supported");
  EXPECT_EQ(of_responses(R"({"input": [{"role": "user", "content": [{"type": "input_image"}]}]})"),
            "input[0].content[0]: parts of type \"input_image\" are not supported");
  EXPECT_TRUE(of_responses(R"({})").is_string());
}

}  // namespace
}  // namespace kvasir::serve
