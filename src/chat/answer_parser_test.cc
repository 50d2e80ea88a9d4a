// Tests answers of every format: passed in two pieces split at every byte, and truncated at every byte.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <kvasir/chat.h>
#include <nlohmann/json.hpp>

namespace kvasir {
namespace {

// Shows parts as a string: "R[...]" reasoning, "T[...]" text, "C0[name]" a call, "A0[...]" its arguments.
std::string shown(const std::vector<AnswerPart>& parts) {
  std::string text;
  AnswerPart last;
  const auto close = [&] {
    if (!text.empty()) text += "]";
  };
  for (const AnswerPart& part : parts) {
    if (text.empty() || part.kind != last.kind || part.kind == AnswerPart::call || part.index != last.index) {
      close();
      text += std::string("TRCA").substr(part.kind, 1) + (part.index < 0 ? "" : std::to_string(part.index)) + "[";
    }
    text += part.text;
    last = part;
  }
  close();
  return text;
}

void append(std::vector<AnswerPart>* all, std::vector<AnswerPart> more) {
  all->insert(all->end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

struct Case {
  std::string format, answer, parts;
  AnswerOptions options = {.tools = {"f", "get_weather"}};
  bool in_reasoning = false;
};

std::string parsed(const Case& c, size_t cut) {
  auto parser = AnswerParser::create(c.format, c.options, c.in_reasoning);
  std::vector<AnswerPart> parts = parser->push(c.answer.substr(0, cut));
  append(&parts, parser->push(c.answer.substr(cut)));
  append(&parts, parser->finish());
  return shown(parts);
}

std::string by_byte(const Case& c, size_t most = std::string::npos) {
  auto parser = AnswerParser::create(c.format, c.options, c.in_reasoning);
  std::vector<AnswerPart> parts;
  for (const char byte : c.answer.substr(0, most)) append(&parts, parser->push({&byte, 1}));
  append(&parts, parser->finish());
  return shown(parts);
}

constexpr const char* kSep = "<\uFF5Ctool\u2581sep\uFF5C>";
constexpr const char* kBegin = "<\uFF5Ctool\u2581call\u2581begin\uFF5C>";
constexpr const char* kEnd = "<\uFF5Ctool\u2581call\u2581end\uFF5C>";

std::string deepseek(const std::string& calls) {
  return "<\uFF5Ctool\u2581calls\u2581begin\uFF5C>" + calls + "<\uFF5Ctool\u2581calls\u2581end\uFF5C>";
}

std::vector<Case> cases() {
  return {
      {"none", "a <tool_call> b\n\n", "T[a <tool_call> b\n\n]"},
      {"none", "<think>\nwhy\nnot\n</think>\n\nso", "R[why\nnot]T[so]"},
      {"none", " \n<think>a</think>b", "R[a]T[b]"},
      {"none", "a <think>b</think>", "T[a <think>b</think>]"},
      {"none", "why\n</think>\n\nso", "R[why]T[so]", {}, true},
      {"none", "why\n\n", "R[why\n\n]", {}, true},
      {"none", " \n", "T[ \n]"},
      // Hermes, Qwen.
      {"hermes", "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>", "C0[f]A0[{\"a\": 1}]"},
      {"hermes", "see:\n<tool_call>{\"arguments\": { \"a\":[1, {}] } , \"name\":\"f\"}</tool_call>",
       "T[see:]C0[f]A0[{ \"a\":[1, {}] }]"},
      {"hermes",
       "<think>\nx\n</think>\n\n<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>\n"
       "<tool_call>\n{\"name\": \"g\", \"arguments\": {\"t\": \"</tool_call>{\\\"\"}}\n</tool_call>\n",
       "R[x]C0[f]A0[{}]C1[g]A1[{\"t\": \"</tool_call>{\\\"\"}]"},
      {"hermes", "<tool_call>\n{\"name\": \"f\", \"arguments\": \"{\\\"a\\\": 1}\"}\n</tool_call>",
       "C0[f]A0[{\"a\": 1}]"},
      {"hermes", "<tool_call>{\"name\": \"f\"}</tool_call> x", "C0[f]A0[{}]T[ x]"},
      {"hermes",
       "<tool_call>{\"type\": \"function\", \"function\": {\"name\": \"f\", \"arguments\": {\"b\": 2}}}</tool_call>",
       "C0[f]A0[{\"b\": 2}]"},
      {"hermes", "a\n\n<tool_call>none</tool_call>\n", "T[a\n\n<tool_call>none</tool_call>\n]"},
      {"hermes", "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1</tool_call>b", "C0[f]A0[{\"a\": 1]T[b]"},
      {"hermes",
       "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1}}</tool_call>",
       "T[<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1}}</tool_call>]",
       {}},
      {"hermes",
       "<tool_call>{\"name\":\"f\"}</tool_call><tool_call>{\"name\":\"g\"}</tool_call>",
       "C0[f]A0[{}]",
       {.tools = {"f"}, .one_call = true}},
      // Llama 3.
      {"llama3", "{\"name\": \"f\", \"parameters\": {\"a\": \"b\"}}", "C0[f]A0[{\"a\": \"b\"}]"},
      {"llama3", "{\"name\": \"f\", \"parameters\": {}}; {\"name\": \"get_weather\", \"parameters\": {\"x\":1}}",
       "C0[f]A0[{}]C1[get_weather]A1[{\"x\":1}]"},
      {"llama3", "<|python_tag|>{\"type\": \"function\", \"name\": \"f\", \"parameters\": {\"a\": null}}",
       "C0[f]A0[{\"a\": null}]"},
      {"llama3", "{\"name\": \"Ada\", \"parameters\": {\"a\": 1}}",
       "T[{\"name\": \"Ada\", \"parameters\": {\"a\": 1}}]"},
      {"llama3", "{\"city\": \"Rome\"} is it", "T[{\"city\": \"Rome\"} is it]"},
      {"llama3", "Use {\"name\": \"f\"}", "T[Use {\"name\": \"f\"}]"},
      {"llama3", "<|python_tag|>f.call(a=\"b\")", "T[<|python_tag|>f.call(a=\"b\")]"},
      // Mistral.
      {"mistral",
       "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {\"a\": 1}, \"id\": \"123456789\"}, {\"name\": \"g\", "
       "\"arguments\": {}}]",
       "C0[f]A0[{\"a\": 1}]C1[g]A1[{}]"},
      {"mistral", "so [TOOL_CALLS]f[ARGS]{\"a\": \"}\"}[TOOL_CALLS]g[CALL_ID]123456789[ARGS]{}",
       "T[so ]C0[f]A0[{\"a\": \"}\"}]C1[g]A1[{}]"},
      {"mistral", "[TOOL_CALLS] f{\"a\": 1}", "C0[f]A0[{\"a\": 1}]"},
      {"mistral", "[THINK]a[/THINK]b [TOOL_CALL]", "R[a]T[b [TOOL_CALL]]"},
      // DeepSeek.
      {"deepseek",
       deepseek(fmt::format("{0}function{1}f\n```json\n{{\"a\": 1}}\n```{2}\n{0}function{1}g\n```json\n{{}}\n```{2}",
                            kBegin, kSep, kEnd)),
       "C0[f]A0[{\"a\": 1}]C1[g]A1[{}]"},
      {"deepseek", "hm" + deepseek(fmt::format("{0}f{1}{{\"a\": \"b\"}}{2}", kBegin, kSep, kEnd)),
       "T[hm]C0[f]A0[{\"a\": \"b\"}]"},
      {"deepseek", "a\uFF5C <\uFF5Ctool", "T[a\uFF5C <\uFF5Ctool]"},
      // Gemma.
      {"gemma",
       "<start_function_call>call:f{city:<escape>\"Rome\"\n<b><escape>,n:3,l:[true,<escape><escape>],o:{k:1.5}}"
       "<end_function_call>",
       "C0[f]A0[{\"city\":\"\\\"Rome\\\"\\n<b>\",\"n\":3,\"l\":[true,\"\"],\"o\":{\"k\":1.5}}]"},
      {"gemma", "<|channel>thought\nwhy\n<channel|><|tool_call>call:f{a:<|\"|>x<|\"|>}<tool_call|>ok",
       "R[why]C0[f]A0[{\"a\":\"x\"}]T[ok]"},
      {"gemma", "<|tool_call>f{}<tool_call|>", "T[<|tool_call>f{}<tool_call|>]"},
      // gpt-oss.
      {"harmony",
       "<|channel|>analysis<|message|>why<|end|><|start|>assistant<|channel|>commentary to=functions.f "
       "<|constrain|>json<|message|>{\"a\": 1}<|call|>",
       "R[why]C0[f]A0[{\"a\": 1}]"},
      {"harmony", " to=functions.f<|channel|>commentary json<|message|>{}", "C0[f]A0[{}]"},
      {"harmony", "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>b <|x|>",
       "R[a]T[b <|x|>]"},
      {"harmony", "plain", "T[plain]"},
  };
}

TEST(AnswerParser, EveryFormatCutAtEveryByte) {
  for (const Case& c : cases()) {
    ASSERT_EQ(by_byte(c), c.parts) << c.format << ": " << c.answer;
    for (size_t cut = 0; cut <= c.answer.size(); ++cut)
      ASSERT_EQ(parsed(c, cut), c.parts) << c.answer << ", at " << cut;
  }
}

// The parts returned for any prefix of an answer are a prefix of the parts of the whole answer.
TEST(AnswerParser, ATruncatedAnswer) {
  for (const Case& c : cases()) {
    const std::string whole = by_byte(c);
    for (size_t n = 0; n < c.answer.size(); ++n) {
      auto parser = AnswerParser::create(c.format, c.options, c.in_reasoning);
      std::vector<AnswerPart> certain = parser->push(c.answer.substr(0, n));
      std::string so_far = shown(certain);
      if (!so_far.empty()) so_far.pop_back();
      EXPECT_TRUE(whole.starts_with(so_far)) << c.answer << ", the first " << n << ": " << so_far;
    }
  }
}

TEST(AnswerParser, FormatsByName) {
  EXPECT_EQ(AnswerParser::create("xml").error().where, "AnswerParser::format");
  EXPECT_EQ(AnswerParser::create("mistral")->id_characters(), 9u);
  auto parser = AnswerParser::create("hermes", {.tools = {"f"}});
  (void)parser->push("<think>a");
  EXPECT_TRUE(parser->reasons());
  (void)parser->push("</think><tool_call>{\"name\":\"f\"");
  EXPECT_FALSE(parser->reasons());
  EXPECT_EQ(parser->calls(), 1);
  EXPECT_EQ(parser->complete_calls(), 0);
  (void)parser->push("}");
  EXPECT_EQ(parser->complete_calls(), 1);
}

TEST(AnswerParser, ACallWithinFunctionIsOneCall) {
  auto parser = AnswerParser::create("llama3", {.tools = {"f"}});
  (void)parser->push(R"(<|python_tag|>{"type": "function", "function": {"name": "f", "arguments": {"a": 3}}})");
  EXPECT_EQ(parser->calls(), 1);
  EXPECT_EQ(parser->complete_calls(), 1);
}

TEST(AnswerParser, AFunctionWithinAFunctionIsNoCallHoweverDeep) {
  auto parser = AnswerParser::create("hermes", {.tools = {"f"}});
  std::string text = "<tool_call>";
  for (int i = 0; i < 100000; ++i) text += R"({"function":)";
  (void)parser->push(text + R"({"name":"f"})" + std::string(100000, '}') + "</tool_call>");
  (void)parser->finish();
  EXPECT_EQ(parser->calls(), 0);
}

std::shared_ptr<const ChatTemplate> made(std::string_view jinja) { return *ChatTemplate::parse(jinja); }

TEST(AnswerParser, OfATemplate) {
  const auto plain = made("{{ messages[0].content }}<think>\n");
  EXPECT_EQ(plain->answer_format(), "none");
  EXPECT_FALSE(plain->writes_tools());
  const auto prompt = plain->render(R"({"messages": [{"role": "user", "content": "a"}]})");
  EXPECT_TRUE(plain->parser(*prompt).reasons());
  // The opening mark of reasoning has no effect in a user's message.
  const auto echo = made("{{ messages[0].content }}");
  EXPECT_FALSE(echo->parser(*echo->render(R"({"messages": [{"role": "user", "content": "<think>"}]})")).reasons());
  EXPECT_EQ(made("{{ tools }}<tool_call>")->answer_format(), "hermes");
  EXPECT_TRUE(made("{{ tools }}<tool_call>")->writes_tools());
  EXPECT_EQ(made("[TOOL_CALLS]")->answer_format(), "mistral");
  EXPECT_EQ(made("<|start_header_id|>{{ '\"parameters\"' }}")->answer_format(), "llama3");
  EXPECT_EQ(made("<|channel|>")->answer_format(), "harmony");
}

}  // namespace
}  // namespace kvasir
