// Tests where a model's template is found, which variables it gets, and how conversations from clients are adapted.
#include <kvasir/chat.h>

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>

namespace kvasir {
namespace {

namespace fs = std::filesystem;

std::string text_of(const std::shared_ptr<const ChatTemplate>& made, std::string_view conversation) {
  const auto text = made->render(conversation, {.now = 0});
  return text ? text->text : "error: " + text.error().message();
}

std::string text_of(std::string_view jinja, std::string_view conversation) {
  const auto made = ChatTemplate::parse(jinja, {{"bos_token", "<s>"}});
  return made ? text_of(*made, conversation) : "error: " + made.error().message();
}

class ChatTemplateFiles : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("chat_" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  void put(const std::string& name, const std::string& text) { std::ofstream(folder_ / name) << text; }
  std::string rendered(std::string_view conversation = R"({"messages": []})") {
    const auto made = ChatTemplate::of_model(folder_.string());
    return made ? text_of(*made, conversation) : made.error().message();
  }
  fs::path folder_;
};

TEST_F(ChatTemplateFiles, OfAFolder) {
  EXPECT_EQ(ChatTemplate::of_model(folder_.string()).error().kind, Error::not_found);
  put("tokenizer_config.json", R"({"chat_template": "{{ bos_token }}c", "bos_token": {"content": "<b>"}})");
  EXPECT_EQ(rendered(), "<b>c");
  put("tokenizer_config.json", R"({"chat_template": [{"name": "default", "template": "d"},
                                                     {"name": "tool_use", "template": "t"}]})");
  EXPECT_EQ(rendered(), "d");
  EXPECT_EQ(rendered(R"({"messages": [], "tools": [{}]})"), "t");
  EXPECT_EQ(rendered(R"({"messages": [], "tools": []})"), "d");
  put("chat_template.jinja", "file");
  EXPECT_EQ(rendered(), "file");
  put("chat_template.jinja", "\n{% include 'x' %}");
  EXPECT_THAT(rendered(), testing::HasSubstr("chat template, line 2: the tag 'include' is not supported"));
}

TEST(ChatTemplate, AConversationIsAdapted) {
  EXPECT_EQ(text_of("{{ messages[0].content }}", R"({"messages": [{"role": "user",
      "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]})"),
            "ab");
  EXPECT_EQ(text_of("{% for p in messages[0].content %}<{{ p.text }}>{% endfor %}", R"({"messages": [{"role": "user",
      "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]})"),
            "<a><b>");
  const char* const calls = R"({"messages": [{"role": "assistant", "tool_calls": [
      {"function": {"name": "f", "arguments": "{\"x\": 1}"}}]}]})";
  EXPECT_EQ(text_of("{{ messages[0].tool_calls[0].function.arguments.x }}", calls), "1");
  EXPECT_EQ(text_of("{{ messages[0].role }}", R"({"messages": [{"role": "developer"}]})"), "system");
  EXPECT_EQ(text_of("{{ messages[0].role == 'developer' }}", R"({"messages": [{"role": "developer"}]})"), "True");
  EXPECT_EQ(text_of("{{ x }}", "[]").substr(0, 6), "error:");
}

TEST(ChatTemplate, TheDayAndTheDataAreAsAsked) {
  const auto made = ChatTemplate::parse("{{ strftime_now('%Y-%m-%d') }} {{ messages[0].content }}");
  const char* const conversation = R"({"messages": [{"content": "ab"}]})";
  const auto text = (*made)->render(conversation, {.now = 86400.0 * 366});
  EXPECT_EQ(text->text, "1971-01-02 ab");
  EXPECT_THAT(text->data, testing::ElementsAre(TextSpan{11, 13}));
  EXPECT_THAT((*made)->render(conversation, {.now = 0, .marks_data = false})->data, testing::IsEmpty());
}

TEST(ChatTemplate, WhichVariablesItReads) {
  const auto made = ChatTemplate::parse("{{ enable_thinking }}");
  EXPECT_TRUE((*made)->reads("enable_thinking"));
  EXPECT_FALSE((*made)->reads("reasoning_effort"));
}

TEST(ChatTemplate, TheLinesThatWroteATextAreKnown) {
  const auto made = ChatTemplate::parse("a\n{% for m in messages %}\n<{{ m.content }}>\n{% endfor %}");
  const auto text = (*made)->render(R"({"messages": [{"content": "\u00e9"}, {"content": ""}]})");
  EXPECT_EQ(text->text, "a\n<\u00e9>\n<>\n");
  using Lines = std::vector<std::pair<size_t, int>>;
  EXPECT_EQ(text->lines, (Lines{{0, 1}, {2, 3}, {3, 3}, {5, 3}, {7, 3}, {8, 3}}));
}

TEST(ChatTemplate, ALastMessageGoesOn) {
  const char* const jinja = "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}";
  EXPECT_EQ(text_of(jinja, R"({"continue_final_message": true, "messages": [{"role": "user", "content": "a"},
                               {"role": "assistant", "content": "b "}]})"),
            "<user>a</><assistant>b ");
  EXPECT_EQ(text_of("{{ messages[0].content|trim }}</>", R"({"continue_final_message": true,
                     "messages": [{"role": "assistant", "content": " b "}]})"),
            "b");
  EXPECT_THAT(text_of("x", R"({"continue_final_message": true, "messages": [{"role": "assistant", "content": "b"}]})"),
              testing::HasSubstr("continue_final_message"));
}

}  // namespace
}  // namespace kvasir
