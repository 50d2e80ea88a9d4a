// Tests the counts from streams as several servers write them.
#include "serve/replay_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvasir::serve {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string event(const std::string& json) { return "data: " + json + "\n\n"; }
std::string choice(const std::string& members) { return event(R"({"choices": [{)" + members + "}]}"); }

struct Told {
  std::vector<std::pair<int, int>> tokens;  // choice, count
  std::optional<Error> error;
};

Told read(StreamedAnswer* answer, std::string_view stream, size_t step = 1000000) {
  Told told;
  for (; !stream.empty(); stream.remove_prefix(std::min(step, stream.size()))) {
    const auto news = answer->read(stream.substr(0, step));
    if (!news) {
      told.error = news.error();
      return told;
    }
    for (const auto& tokens : *news) told.tokens.emplace_back(tokens.choice, tokens.count);
  }
  return told;
}

// A stream as this server writes it.
const std::string kOwn =
    ": ping\n\n" + choice(R"("text": "", "index": 0, "finish_reason": null, "prompt_token_ids": [1, 2])") +
    choice(R"("text": "a", "index": 0, "finish_reason": null, "token_ids": [11])") +
    choice(R"("text": "", "index": 1, "finish_reason": null, "token_ids": [21])") +
    choice(R"("text": "bc", "index": 0, "finish_reason": null, "token_ids": [12, 13])") +
    choice(R"("text": "", "index": 0, "finish_reason": "length")") +
    choice(R"("text": "", "index": 1, "finish_reason": "length")") +
    event(R"({"choices": [], "usage": {"prompt_tokens": 2, "completion_tokens": 4, "total_tokens": 6,
              "prompt_tokens_details": {"cached_tokens": 1}}})") +
    "data: [DONE]\n\n";

TEST(StreamedAnswer, CountsByTheIds) {
  for (const size_t step : {size_t{1}, size_t{2}, size_t{17}, size_t{1000000}}) {
    StreamedAnswer answer(2);
    std::string stream = kOwn;
    for (size_t at; (at = stream.find("\n      ")) != stream.npos;) stream.replace(at, 15, " ");
    const Told told = read(&answer, stream, step);
    ASSERT_FALSE(told.error) << told.error->message();
    EXPECT_THAT(told.tokens, ElementsAre(std::pair(0, 1), std::pair(1, 1), std::pair(0, 2)));
    EXPECT_THAT(answer.ids(), ElementsAre(11, 12, 13));
    EXPECT_EQ(answer.generated(), 4);
    EXPECT_EQ(answer.usage()->prompt, 2);
    EXPECT_EQ(answer.usage()->cached, 1);
    EXPECT_TRUE(answer.is_done());
    EXPECT_EQ(answer.answer_tokens(), 3) << "choice 0's, of 4";
  }
}

TEST(StreamedAnswer, WithoutIdsAChunkOfTextIsAToken) {
  StreamedAnswer answer(1);
  const Told told = read(&answer, choice(R"("text": "a", "index": 0)") + choice(R"("text": "", "index": 0)") +
                                      choice(R"("text": "bc", "finish_reason": "length", "token_ids": null)"));
  EXPECT_THAT(told.tokens, ElementsAre(std::pair(0, 1), std::pair(0, 1)));
  EXPECT_EQ(answer.generated(), 2);
  EXPECT_EQ(answer.answer_tokens(), 2);
  EXPECT_TRUE(answer.is_complete());
  EXPECT_FALSE(answer.is_done());
  read(&answer, event(R"({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 3}})"));
  EXPECT_EQ(answer.generated(), 3) << "the usage knows better";
  EXPECT_EQ(answer.answer_tokens(), 3);
  EXPECT_EQ(answer.usage()->cached, std::nullopt);
  EXPECT_THAT(answer.ids(), ElementsAre());
}

TEST(StreamedAnswer, IsCompleteWhenAllChoicesAre) {
  StreamedAnswer answer(2);
  read(&answer, choice(R"("text": "a", "index": 1, "finish_reason": "stop")"));
  EXPECT_FALSE(answer.is_complete());
  read(&answer, choice(R"("text": "a", "index": 0, "finish_reason": "stop")"));
  EXPECT_TRUE(answer.is_complete());
}

TEST(StreamedAnswer, NothingCountsAfterTheEnd) {
  StreamedAnswer answer(1);
  EXPECT_THAT(read(&answer, "data: [DONE]\n\n" + choice(R"("text": "a")") + "data: x\n\n").tokens, ElementsAre());
  EXPECT_TRUE(answer.is_done());
}

TEST(StreamedAnswer, TellsErrors) {
  const std::pair<std::string, std::string> kWrong[] = {
      {event(R"({"error": {"message": "too hot", "code": 500}})"), "too hot"},
      {event(R"({"error": "cold"})"), "cold"},
      {event("{"), "no JSON object"},
      {event("[1]"), "no JSON object"},
      {choice(R"("text": "a", "index": 1)"), "choice 1 of 1"},
  };
  for (const auto& [stream, says] : kWrong) {
    StreamedAnswer answer(1);
    const Told told = read(&answer, stream);
    ASSERT_TRUE(told.error) << stream;
    EXPECT_THAT(told.error->message(), HasSubstr(says));
  }
}

TEST(StreamedAnswer, OddMembersCountAsAbsent) {
  StreamedAnswer answer(1);
  for (const char* odd : {R"({"choices": 7, "usage": [], "error": null})", R"({"choices": [7, null, {"text": 5}]})",
                          R"({"usage": {"prompt_tokens": -1, "completion_tokens": 1e99}})",
                          R"({"choices": [{"index": -1, "token_ids": ["x", 3.5, 7]}]})"}) {
    const Told told = read(&answer, event(odd));
    EXPECT_FALSE(told.error) << odd;
  }
  EXPECT_EQ(answer.usage(), std::nullopt);
  EXPECT_THAT(answer.ids(), ElementsAre(7));
}

TEST(StreamedAnswer, FindsTheMessageOfABody) {
  EXPECT_EQ(told_error(R"({"error": {"message": "m"}})"), "m");
  EXPECT_EQ(told_error(R"({"detail": 1})"), R"({"detail": 1})");
  EXPECT_EQ(told_error(std::string(300, 'x')).size(), 200u);
}

}  // namespace
}  // namespace kvasir::serve
