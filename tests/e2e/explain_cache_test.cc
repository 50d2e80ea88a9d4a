// kvasir explain-cache from outside: requests of every API, and a template that writes earlier turns differently later.
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/support/program.h"

namespace kvasir::e2e {
namespace {

using Json = nlohmann::json;

// Line 2 writes the reasoning of the last answer only.
constexpr const char* kTemplate =
    "{% for m in messages %}\n"
    "[{{ m.role }}]{% if m.reasoning_content and loop.index >= messages|length - 1 %}({{ m.reasoning_content }}){% "
    "endif %}\n"
    "{{ m.content }}\n"
    "{% endfor %}\n";

class E2eExplainCache : public testing::Test {
 protected:
  void SetUp() override { put(folder_ / "chat.jinja", kTemplate); }

  Outcome explain(const Json& a, const Json& b, std::vector<std::string> more = {}) {
    put(folder_ / "a.json", a.dump());
    put(folder_ / "b.json", b.dump());
    std::vector<std::string> all{"explain-cache", folder_ / "a.json", folder_ / "b.json", "--chat-template",
                                 folder_ / "chat.jinja"};
    all.insert(all.end(), more.begin(), more.end());
    return run_program(all);
  }

  TempFolder folder_;
};

const Json kAsked = {{"role", "user"}, {"content", "one"}};
const Json kThought = {{"role", "assistant"}, {"content", "two"}, {"reasoning_content", "why"}};
const Json kAgain = {{"role", "user"}, {"content", "three"}};
const Json kLast = {{"role", "user"}, {"content", "four"}};

TEST_F(E2eExplainCache, AConversationThatGoesOn) {
  const Outcome outcome = explain({{"messages", {kAsked}}}, {{"messages", {kAsked, kAgain}}});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, testing::HasSubstr("B continues where A ends"));
}

TEST_F(E2eExplainCache, TheLineThatDroppedWhatWasThought) {
  const Json a = {{"messages", {kAsked, kThought, kAgain}}}, b = {{"messages", {kAsked, kThought, kAgain, kLast}}};
  const Outcome outcome = explain(a, b);
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_THAT(outcome.out, testing::HasSubstr("line 2 of the template wrote it, from its own text"));
  EXPECT_THAT(outcome.out, testing::HasSubstr("line 3 of the template wrote it"));
  const Json json = Json::parse(explain(a, b, {"--json"}).out, nullptr, false);
  EXPECT_EQ(json["differs_at"], std::string("[user]one\n[assistant]").size());
  EXPECT_EQ(json["a"]["template_line"], 2);
  EXPECT_TRUE(json["a"]["text"].get<std::string>().starts_with("(why)")) << json;
}

TEST_F(E2eExplainCache, RequestsOfTheOtherApis) {
  const Json block = {{"role", "user"}, {"content", {{{"type", "text"}, {"text", "one"}}}}};
  const Json messages = {{"system", ""}, {"messages", {block}}}, responses = {{"input", "one"}};
  EXPECT_EQ(explain(messages, {{"messages", {kAsked, kAgain}}}).code, 0);
  EXPECT_EQ(explain(responses, {{"messages", {kAsked, kAgain}}}).code, 0);
  EXPECT_EQ(explain(responses, {{"messages", {kAgain}}}).code, 1);
}

TEST_F(E2eExplainCache, ABadRequestIsNamed) {
  const Outcome outcome = explain({{"messages", Json::array()}}, {{"messages", {kAsked}}});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, testing::HasSubstr("a.json"));
}

}  // namespace
}  // namespace kvasir::e2e
