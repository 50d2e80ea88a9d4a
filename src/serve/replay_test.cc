// Tests replays against fake servers: the requests that they get, and the figures from their answers.
#include "serve/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serve/json.h"
#include "tests/support/http_server_fixture.h"

namespace kvasir::serve {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kVocab = 97;

/// A fake server's reply to a completion: events, all at once, or a plain answer.
struct Reply {
  std::string events = {};
  HttpAnswer plain = {};
  bool stays_open = false;
};

std::string event(const Json& json) { return "data: " + to_text(json) + "\n\n"; }
std::string token(int index, const Json& ids, const Json& finish = nullptr) {
  Json choice = {{"index", index}, {"text", "t"}, {"finish_reason", finish}};
  if (!ids.is_null()) choice["token_ids"] = ids;
  return event({{"choices", Json::array({choice})}});
}
std::string usage(int prompt, int completion, const Json& cached) {
  return event({{"choices", Json::array()},
                {"usage",
                 {{"prompt_tokens", prompt},
                  {"completion_tokens", completion},
                  {"prompt_tokens_details", {{"cached_tokens", cached}}}}}});
}
const std::string kDone = "data: [DONE]\n\n";

class Fake {
 public:
  using Complete = std::function<Reply(const Json& body)>;
  explicit Fake(Complete complete,
                Json models = {{"data", Json::array({{{"id", "m"}, {"meta", {{"n_vocab", kVocab}}}}})}})
      : complete_(std::move(complete)),
        models_(std::move(models)),
        server_([this](auto exchange) { take(exchange); }) {}

  std::string url() const { return "http://127.0.0.1:" + std::to_string(server_.port()); }
  std::vector<Json> bodies() {
    return server_.in_loop([this] { return bodies_; });
  }
  std::vector<std::string> paths() {
    return server_.in_loop([this] { return paths_; });
  }
  bool sees_gone(int count) {
    return server_.soon([&] { return gone_ == count; });
  }

 private:
  void take(const std::shared_ptr<Exchange>& exchange) {
    paths_.push_back(exchange->request().path);
    if (exchange->request().method == "GET") return exchange->answer({.body = to_text(models_)});
    bodies_.push_back(parse_json(exchange->request().body).value());
    const Reply reply = complete_(bodies_.back());
    if (reply.events.empty()) return exchange->answer(reply.plain);
    exchange->on_gone([this] { ++gone_; });
    auto part = std::make_shared<StreamPart>(StreamPart{reply.events, !reply.stays_open});
    exchange->stream({.content_type = "text/event-stream"}, [part] { return std::exchange(*part, {}); });
    if (reply.stays_open) kept_.push_back(exchange);
  }

  Complete complete_;
  Json models_;
  std::vector<Json> bodies_;
  std::vector<std::string> paths_;
  std::vector<std::shared_ptr<Exchange>> kept_;
  int gone_ = 0;
  RunningServer server_;
};

std::vector<int> ids_of(const Json& json) { return json.get<std::vector<int>>(); }

TraceRequest request(const std::string& name, int tokens, int salt) {
  TraceRequest request;
  request.name = name;
  request.prompt = {{tokens, salt}};
  request.max_tokens = 3;
  return request;
}

ReplayResult played(Fake& server, std::vector<TraceRequest> trace) {
  const auto result = replay({.trace = std::move(trace), .url = server.url()});
  EXPECT_TRUE(result) << result.error().message();
  return result.value_or(ReplayResult{});
}

TEST(Replay, AsksAsDocumented) {
  Fake server([](const Json&) { return Reply{token(0, {5, 6, 7}, "length") + usage(4, 3, 1) + kDone}; });
  TraceRequest both = request("b", 2, 9);
  both.at_s = 0.02;
  both.choices = 2;
  both.priority = 4;
  const ReplayResult result = played(server, {request("a", 4, 8), both});
  const std::vector<Json> bodies = server.bodies();
  ASSERT_EQ(bodies.size(), 2u);
  EXPECT_EQ(bodies[0], (Json{{"model", "m"},
                             {"prompt", trace_ids({4, 8}, kVocab)},
                             {"max_tokens", 3},
                             {"stream", true},
                             {"stream_options", {{"include_usage", true}}},
                             {"seed", 1},
                             {"ignore_eos", true},
                             {"n", 1},
                             {"return_token_ids", true},
                             {"temperature", 0}}));
  EXPECT_EQ(bodies[1]["n"], 2);
  EXPECT_EQ(bodies[1]["priority"], 4);
  EXPECT_FALSE(bodies[1].contains("temperature"));
  EXPECT_THAT(server.paths(), ElementsAre("/v1/models", "/v1/completions", "/v1/completions"));
}

TEST(Replay, AddsUpWhatAnswersTell) {
  Fake server([](const Json&) { return Reply{token(0, {5, 6, 7}, "length") + usage(4, 3, 1) + kDone}; });
  std::vector<TraceRequest> trace = {request("a", 4, 8), request("b", 4, 9)};
  trace[1].owner = "x";
  const ServeReport report = played(server, trace).report;
  EXPECT_TRUE(report.elsewhere);
  EXPECT_TRUE(report.reused_told);
  EXPECT_EQ(report.requests, 2);
  EXPECT_EQ(report.stats.submitted, 2);
  EXPECT_EQ(report.stats.finished, 2);
  EXPECT_EQ(report.stats.reused, 2);
  EXPECT_EQ(report.stats.computed, 6);
  EXPECT_EQ(report.stats.generated, 6);
  EXPECT_GT(report.wall_s, 0);
  EXPECT_GT(report.generated_tok_s, 0);
  EXPECT_GT(report.first_token_s_of_owner.at("x").p50, 0);
  EXPECT_GE(report.total_s.p50, report.first_token_s.p50);
}

std::vector<TraceRequest> conversation() {
  TraceRequest next = request("b", 2, 9);
  next.after = "a";
  next.think_s = 0.03;
  next.continues = true;
  return {request("a", 4, 8), next};
}

TEST(Replay, FollowersContinueWithTheServersIds) {
  Fake server([](const Json&) { return Reply{token(0, {5, 6}) + token(0, {7}, "length") + usage(4, 3, 0) + kDone}; });
  const ReplayResult result = played(server, conversation());
  std::vector<int> expected = trace_ids({4, 8}, kVocab);
  expected.insert(expected.end(), {5, 6, 7});
  for (const int id : trace_ids({2, 9}, kVocab)) expected.push_back(id);
  EXPECT_EQ(ids_of(server.bodies().at(1)["prompt"]), expected);
  EXPECT_GE(result.report.wall_s, 0.03);
}

TEST(Replay, OrWithMadeUpOnesOfTheSameCount) {
  Fake server([](const Json&) {
    const Json chunk = {{"choices", Json::array({{{"text", "two tokens"}, {"finish_reason", "length"}}})}};
    return Reply{event(chunk) + usage(4, 3, nullptr) + kDone};
  });
  const ServeReport report = played(server, conversation()).report;
  const std::vector<int> prompt = ids_of(server.bodies().at(1)["prompt"]);
  ASSERT_EQ(prompt.size(), 4u + 3 + 2);
  EXPECT_THAT(prompt, testing::Each(testing::AllOf(testing::Ge(0), testing::Lt(kVocab))));
  EXPECT_EQ(report.stats.generated, 6);
  EXPECT_FALSE(report.reused_told);
}

TEST(Replay, ACancelClosesTheConnection) {
  Fake server([](const Json&) { return Reply{.events = token(0, {5}) + token(0, {6}), .stays_open = true}; });
  TraceRequest leaves = request("a", 4, 8);
  leaves.cancel_after = 2;
  const ServeReport report = played(server, {leaves}).report;
  EXPECT_EQ(report.stats.cancelled, 1);
  EXPECT_EQ(report.stats.finished, 0);
  EXPECT_EQ(report.stats.generated, 2);
  EXPECT_TRUE(server.sees_gone(1));
}

TEST(Replay, DoesNotWaitForAServerThatNeverCloses) {
  Fake server([](const Json&) {
    return Reply{.events = token(0, {5}, "length") + usage(4, 1, 0) + kDone, .stays_open = true};
  });
  EXPECT_EQ(played(server, {request("a", 4, 8)}).report.stats.finished, 1);
}

TEST(Replay, CountsWhatFails) {
  const std::pair<Reply, std::string> kFailures[] = {
      {{.plain = {.status = 429, .body = R"({"error": {"message": "full"}})"}}, "status 429: full"},
      {{.events = token(0, {5}) + event({{"error", {{"message", "hot"}}}})}, "hot"},
      {{.events = token(0, {5})}, "ends before the answer"},
      {{.events = "data: {\n\n"}, "no JSON object"}};
  for (const auto& [failure, says] : kFailures) {
    int calls = 0;
    Fake server([&calls, failure = failure](const Json&) {
      return ++calls == 1 ? failure : Reply{token(0, {5}, "length") + usage(4, 1, 0) + kDone};
    });
    const ReplayResult result = played(server, conversation());
    EXPECT_EQ(result.report.stats.failed, 1);
    EXPECT_EQ(result.report.stats.finished, 1);
    EXPECT_THAT(result.first_failure, HasSubstr("'a': "));
    EXPECT_THAT(result.first_failure, HasSubstr(says));
  }
}

void expect_error(const Fake& server, Error::Kind kind, const std::string& says, const std::string& model = "",
                  int vocab = 0) {
  const auto result = replay({.trace = {request("a", 4, 8)}, .url = server.url(), .model = model, .vocab = vocab});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, kind);
  EXPECT_THAT(result.error().message(), HasSubstr(says));
}

TEST(Replay, IsAnErrorWhereEveryRequestFails) {
  Fake server([](const Json&) { return Reply{.plain = {.status = 400, .body = "never"}}; });
  expect_error(server, Error::io, "the first 'a': status 400: never");
}

TEST(Replay, TheModelMustBeKnown) {
  const auto never = [](const Json&) { return Reply{.plain = {.status = 400, .body = "never"}}; };
  expect_error(Fake(never, {{"data", Json::array()}}), Error::not_found, "lists no model");
  expect_error(Fake(never, Json::array()), Error::not_found, "lists no model");
  const Json without = {{"data", Json::array({{{"id", "x"}}})}};
  expect_error(Fake(never, without), Error::bad_argument, "how many token ids 'x' has");
  expect_error(Fake(never), Error::bad_argument, "how many token ids 'y' has", "y");
  expect_error(Fake(never, without), Error::io, "every request failed", "", 5);
  expect_error(Fake(never, without), Error::io, "every request failed", "y", 5);
}

TEST(Replay, TakesTheModelAskedForAndAPrefixOfTheUrl) {
  const Json models = {
      {"data", Json::array({{{"id", "m"}, {"meta", {{"n_vocab", 5}}}}, {{"id", "n"}, {"meta", {{"n_vocab", 3}}}}})}};
  Fake server([](const Json&) { return Reply{token(0, {5}, "length") + usage(4, 1, 0) + kDone}; }, models);
  for (const char* prefix : {"/v1", "/x/v1/", "/y"}) {
    const auto result = replay({.trace = {request("a", 9, 8)}, .url = server.url() + prefix, .model = "n"});
    ASSERT_TRUE(result);
  }
  EXPECT_EQ(server.bodies()[0]["model"], "n");
  EXPECT_EQ(ids_of(server.bodies()[0]["prompt"]), trace_ids({9, 8}, 3));
  EXPECT_THAT(server.paths(), ElementsAre("/v1/models", "/v1/completions", "/x/v1/models", "/x/v1/completions",
                                          "/y/v1/models", "/y/v1/completions"));
}

}  // namespace
}  // namespace kvasir::serve
