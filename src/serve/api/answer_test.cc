// Tests answers from made-up events: the order of chunks, a slow reader, failures, a client that disconnects.
#include "serve/api/answer.h"

#include <deque>
#include <map>

#include <gmock/gmock.h>

namespace kvasir::serve {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

const Model& tales() {
  static const auto model = Model::open(KVASIR_SOURCE_DIR "/models/tales");
  return **model;
}

class FakeExchange : public Exchange {
 public:
  FakeExchange() : Exchange(HttpRequest{}) {}
  void answer(HttpAnswer answer) override { whole = std::move(answer); }
  void stream(HttpAnswer answer, std::function<StreamPart()> next) override {
    head = std::move(answer);
    more = std::move(next);
  }
  void wake() override { ++woken; }
  void on_gone(std::function<void()> gone) override { leave = std::move(gone); }

  /// Returns the JSON of the events that are ready for the client, in order.
  std::vector<Json> read() {
    std::vector<Json> events;
    const StreamPart part = more();
    last = part.last;
    for (size_t at = 0; at < part.bytes.size();) {
      const size_t end = part.bytes.find("\n\n", at);
      std::string line = part.bytes.substr(at, end - at);
      if (line.starts_with("event: ")) line = line.substr(line.find('\n') + 1);
      if (line.starts_with("data: ") && line != "data: [DONE]") events.push_back(Json::parse(line.substr(6)));
      done = done || line == "data: [DONE]";
      pings += line == ": ping" ? 1 : 0;
      at = end + 2;
    }
    return events;
  }

  std::optional<HttpAnswer> whole, head;
  std::function<StreamPart()> more;
  std::function<void()> leave;
  int woken = 0, pings = 0;
  bool last = false, done = false;
};

class FakeQueue : public RequestQueue {
 public:
  Result<RequestId> submit(Request request, Sink sink) override {
    if (refusal) return tl::unexpected(*refusal);
    requests.push_back(std::move(request));
    sinks[requests.size()] = std::move(sink);
    return requests.size();
  }
  void cancel(RequestId id, std::optional<int>) override { cancelled.push_back(id); }
  int ctx() const override { return 64; }
  const Model& model() const override { return tales(); }

  void admit(RequestId id, int reused = 0, std::vector<int> kept = {}) {
    send(id, 0, Admitted{.reused = reused, .kept_ids = std::move(kept)});
  }
  void tokens(RequestId id, int choice, std::vector<int> ids, std::string text) {
    Event event;
    for (const int token : ids) event.logprobs.push_back({.id = token, .logprob = -0.5 * token});
    event.ids = std::move(ids);
    event.text = std::move(text);
    send(id, choice, std::move(event));
  }
  void finish(RequestId id, int choice, StopReason reason) {
    Finished done;
    done.generation.stop_reason = reason;
    done.generation.receipt = "r" + std::to_string(choice);
    done.computed = 3;
    send(id, choice, std::move(done));
  }
  void send(RequestId id, int choice, std::variant<Admitted, Event, Finished, Error> news) {
    RequestEvent event{.request = id, .choice = choice, .news = std::move(news)};
    const Sink sink = sinks.at(id);
    sink(event);
  }

  std::vector<Request> requests;
  std::map<RequestId, Sink> sinks;
  std::vector<RequestId> cancelled;
  std::optional<Error> refusal;
};

class ServeAnswer : public testing::Test {
 protected:
  // A stream's function holds the answer, which holds the exchange. This breaks the cycle, as the connection would.
  void TearDown() override { exchange->more = nullptr; }

  void start(Call call, std::vector<std::vector<int>> prompts = {{5, 6, 7}}) {
    ReplyOptions options{.envelope = {.id = "id-1", .created = 12, .model = "tales", .fingerprint = "f"},
                         .headers = {{"x-request-id", "q"}},
                         .now = [this] { return now; },
                         .after = [this](double seconds, auto task) { timers.emplace(now + seconds, task); },
                         .on_over = [this](const AnswerRecord& r) { records.push_back(r); }};
    Answer::start(exchange, queue, std::move(call), std::move(prompts), std::move(options));
  }
  void pass_to(double time) {
    while (!timers.empty() && timers.begin()->first <= time) {
      now = timers.begin()->first;
      const auto task = timers.begin()->second;
      timers.erase(timers.begin());
      task();
    }
    now = time;
  }
  static Call chat(bool stream) {
    Call call{.kind = kChat};
    call.stream = stream;
    return call;
  }

  std::shared_ptr<FakeExchange> exchange = std::make_shared<FakeExchange>();
  FakeQueue queue;
  double now = 100;
  std::multimap<double, std::function<void()>> timers;
  std::vector<AnswerRecord> records;
};

std::string content(const Json& chunk) { return chunk["choices"][0]["delta"].value("content", "-"); }

TEST_F(ServeAnswer, AChatInChunks) {
  Call call = chat(true);
  call.include_usage = true;
  start(call);
  EXPECT_FALSE(exchange->head) << "an error would still be a status";
  queue.admit(1, 2);
  ASSERT_TRUE(exchange->head);
  EXPECT_THAT(exchange->head->headers, testing::IsSupersetOf({testing::Pair("x-request-id", "q"),
                                                              testing::Pair("x-kvasir-cached-tokens", "2")}));
  const std::vector<Json> role = exchange->read();
  ASSERT_THAT(role, SizeIs(1));
  EXPECT_EQ(role[0]["object"], "chat.completion.chunk");
  EXPECT_EQ(role[0]["choices"][0]["delta"], (Json{{"role", "assistant"}, {"content", ""}}));
  EXPECT_TRUE(role[0]["usage"].is_null() && role[0]["choices"][0]["finish_reason"].is_null());
  queue.tokens(1, 0, {9}, "A");
  const std::vector<Json> first = exchange->read();
  ASSERT_THAT(first, SizeIs(1));
  EXPECT_EQ(content(first[0]), "A");
  EXPECT_THAT(exchange->read(), SizeIs(0));
  queue.finish(1, 0, StopReason::eos);
  const std::vector<Json> end = exchange->read();
  ASSERT_THAT(end, SizeIs(2));
  EXPECT_EQ(end[0]["choices"][0]["delta"], Json::object());
  EXPECT_EQ(end[0]["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(end[0]["kvasir"]["computed_tokens"], 3);
  EXPECT_EQ(end[1]["choices"], Json::array());
  EXPECT_EQ(end[1]["usage"]["completion_tokens"], 1);
  EXPECT_EQ(end[1]["usage"]["prompt_tokens_details"]["cached_tokens"], 2);
  EXPECT_TRUE(exchange->done && exchange->last);
  ASSERT_THAT(records, SizeIs(1));
  EXPECT_EQ(records[0].status, 200);
}

TEST_F(ServeAnswer, WhoReadsSlowlyGetsItInOne) {
  start(chat(true));
  queue.admit(1);
  exchange->read();
  for (int i = 0; i < 50; ++i) queue.tokens(1, 0, {i}, std::string(1, static_cast<char>('a' + i % 26)));
  const std::vector<Json> chunks = exchange->read();
  ASSERT_THAT(chunks, SizeIs(1));
  EXPECT_THAT(content(chunks[0]), SizeIs(50));
  EXPECT_THAT(content(chunks[0]), HasSubstr("xyzabc"));
}

TEST_F(ServeAnswer, ChoicesOfSeveralPromptsKeepTheirIndices) {
  Call call{.kind = kText};
  call.request.choices = 2;
  call.return_ids = true;
  start(call, {{1}, {2, 3}});
  ASSERT_THAT(queue.requests, SizeIs(2));
  queue.tokens(2, 1, {40}, "d");
  queue.tokens(1, 0, {10}, "a");
  queue.tokens(2, 0, {30}, "c");
  queue.tokens(1, 1, {20}, "b");
  for (const RequestId id : {2, 1})
    for (const int choice : {1, 0}) queue.finish(id, choice, StopReason::length);
  ASSERT_TRUE(exchange->whole);
  const Json json = Json::parse(exchange->whole->body);
  EXPECT_EQ(json["object"], "text_completion");
  for (int i = 0; i < 4; ++i) {
    const Json& c = json["choices"][static_cast<size_t>(i)];
    EXPECT_EQ(c["index"], i);
    EXPECT_EQ(c["text"], std::string(1, static_cast<char>('a' + i)));
    EXPECT_EQ(c["token_ids"], Json::array({10 * (i + 1)}));
    EXPECT_EQ(c["prompt_token_ids"], i < 2 ? Json::array({1}) : Json::array({2, 3}));
    EXPECT_EQ(c["finish_reason"], "length");
  }
  EXPECT_EQ(json["usage"]["prompt_tokens"], 3);
  EXPECT_EQ(json["usage"]["completion_tokens"], 4);
  EXPECT_EQ(json["kvasir"]["computed_tokens"], 6) << "of each prompt once";
}

TEST_F(ServeAnswer, LogprobsOfATextCountItsCharacters) {
  Call call{.kind = kText};
  call.request.options.logprobs = 0;
  call.stream = true;
  start(call);
  queue.admit(1);
  const int h = *tales().tokenizer()->find("H"), e = *tales().tokenizer()->find("e");
  queue.tokens(1, 0, {h}, "H");
  EXPECT_EQ(exchange->read()[0]["choices"][0]["logprobs"]["text_offset"], Json::array({0}));
  queue.tokens(1, 0, {e, e}, "ee");
  const Json second = exchange->read()[0]["choices"][0]["logprobs"];
  EXPECT_EQ(second["text_offset"], Json::array({1, 2}));
  EXPECT_EQ(second["tokens"], Json::array({"e", "e"}));
  EXPECT_EQ(second["token_logprobs"][0], -0.5 * e);
}

TEST_F(ServeAnswer, AFailureBeforeTheStreamIsAStatus) {
  start(chat(true));
  queue.send(1, 0, Error{Error::timed_out, "not done after 1 s", "Request::timeout_s", ""});
  ASSERT_TRUE(exchange->whole);
  EXPECT_EQ(exchange->whole->status, 504);
  EXPECT_EQ(records.at(0).error_code, "deadline_exceeded");
}

TEST_F(ServeAnswer, AFailureInTheStreamIsItsLastEvent) {
  Call call = chat(true);
  call.request.choices = 2;
  start(call);
  queue.admit(1);
  queue.tokens(1, 0, {9}, "A");
  queue.send(1, 1, Error{Error::not_finite, "a logit is NaN", "", ""});
  const std::vector<Json> events = exchange->read();
  EXPECT_EQ(events.back()["error"]["code"], "non_finite_logits");
  EXPECT_TRUE(exchange->last);
  EXPECT_FALSE(exchange->done) << "no [DONE] after an error";
  EXPECT_THAT(queue.cancelled, ElementsAre(1)) << "the other choice is nobody's now";
  EXPECT_EQ(records.at(0).status, 500);
}

TEST_F(ServeAnswer, ARefusedRequestTakesTheOthersOfItsCallAlong) {
  start(Call{.kind = kText}, {{1}, std::vector<int>(65, 2)});
  ASSERT_TRUE(exchange->whole);
  EXPECT_EQ(exchange->whole->status, 400);
  EXPECT_THAT(exchange->whole->body, HasSubstr("maximum context length is 64 tokens"));
  EXPECT_THAT(queue.cancelled, ElementsAre(1));
  queue.finish(1, 0, StopReason::cancelled);
  EXPECT_THAT(records, SizeIs(1));
}

TEST_F(ServeAnswer, AFullQueueIsTold) {
  queue.refusal = Error{Error::busy, "256 requests wait", "SchedulerOptions::max_queue", "later again"};
  start(chat(false));
  EXPECT_EQ(exchange->whole->status, 429);
}

TEST_F(ServeAnswer, AClientThatIsGoneCancels) {
  start(Call{.kind = kText}, {{1}, {2}});
  queue.finish(1, 0, StopReason::eos);
  exchange->leave();
  EXPECT_THAT(queue.cancelled, ElementsAre(2)) << "the first has ended";
  ASSERT_THAT(records, SizeIs(1));
  EXPECT_TRUE(records[0].gone);
  queue.tokens(2, 0, {1}, "x");
  queue.finish(2, 0, StopReason::cancelled);
  EXPECT_FALSE(exchange->whole);
  EXPECT_THAT(records, SizeIs(1));
}

TEST_F(ServeAnswer, SilenceIsFilledAndALongQueueIsTold) {
  start(chat(true));
  pass_to(109);
  EXPECT_FALSE(exchange->head);
  pass_to(111);
  ASSERT_TRUE(exchange->head) << "after ten seconds the status goes out, though it still waits";
  exchange->read();
  pass_to(125);
  exchange->read();
  EXPECT_EQ(exchange->pings, 1);
}

TEST_F(ServeAnswer, OnlyThePromptWasWanted) {
  Call call = chat(false);
  call.nothing = true;
  start(call);
  queue.tokens(1, 0, {9}, "A");
  queue.finish(1, 0, StopReason::eos);
  const Json json = Json::parse(exchange->whole->body);
  EXPECT_EQ(json["choices"][0]["message"]["content"], "");
  EXPECT_EQ(json["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(json["usage"]["completion_tokens"], 0);
}

// Sends reasoning, text and a tool call, in pieces.
void send_call(FakeQueue* queue) {
  queue->admit(1, 2);
  for (const char* text : {"<think>why</think>", "so\n<tool_", "call>{\"name\": \"f\", \"argu", "ments\": {\"a\"",
                           ": 1}}", "</tool_call>"})
    queue->tokens(1, 0, {9}, text);
  queue->finish(1, 0, StopReason::eos);
}

Call calling(Dialect dialect, bool stream) {
  Call call{.kind = kChat, .dialect = dialect, .stream = stream};
  call.make_parser = [] { return *AnswerParser::create("hermes", {.tools = {"f"}}); };
  return call;
}

TEST_F(ServeAnswer, CallsOfToolsWhole) {
  start(calling(Dialect::openai, false));
  send_call(&queue);
  const Json json = Json::parse(exchange->whole->body);
  const Json message = json["choices"][0]["message"];
  EXPECT_EQ(message["content"], "so");
  EXPECT_EQ(message["reasoning_content"], "why");
  EXPECT_EQ(message["tool_calls"][0]["function"], Json({{"name", "f"}, {"arguments", "{\"a\": 1}"}}));
  EXPECT_THAT(message["tool_calls"][0]["id"].get<std::string>(), testing::StartsWith("call_"));
  EXPECT_EQ(json["choices"][0]["finish_reason"], "tool_calls");
  EXPECT_EQ(json["usage"]["completion_tokens"], 6);
}

TEST_F(ServeAnswer, CallsOfToolsInAStream) {
  start(calling(Dialect::openai, true));
  send_call(&queue);
  std::string content, reasoning, arguments;
  Json first;
  for (const Json& event : exchange->read()) {
    if (!event.contains("choices") || event["choices"].empty()) continue;
    const Json& delta = event["choices"][0]["delta"];
    content += delta.value("content", "");
    reasoning += delta.value("reasoning_content", "");
    if (!delta.contains("tool_calls")) continue;
    const Json& call = delta["tool_calls"][0];
    EXPECT_EQ(call["index"], 0);
    arguments += call["function"]["arguments"].get<std::string>();
    if (first.is_null())
      first = call;
    else
      EXPECT_FALSE(call.contains("id") || call["function"].contains("name")) << "told once";
  }
  EXPECT_EQ(first["function"], Json({{"name", "f"}, {"arguments", ""}}));
  EXPECT_EQ(content, "so");
  EXPECT_EQ(reasoning, "why");
  EXPECT_EQ(arguments, "{\"a\": 1}");
}

TEST_F(ServeAnswer, ACallThatIsCut) {
  start(calling(Dialect::openai, false));
  queue.tokens(1, 0, {9, 9}, "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\"");
  queue.finish(1, 0, StopReason::length);
  const Json choice = Json::parse(exchange->whole->body)["choices"][0];
  EXPECT_EQ(choice["finish_reason"], "length");
  EXPECT_EQ(choice["message"]["tool_calls"][0]["function"]["arguments"], "{\"a\"");
  EXPECT_TRUE(choice["message"]["content"].is_null());
}

TEST_F(ServeAnswer, OneCallEndsTheAnswer) {
  Call call = calling(Dialect::openai, false);
  call.one_call = true;
  call.make_parser = [] { return *AnswerParser::create("hermes", {.tools = {"f"}, .one_call = true}); };
  start(call);
  queue.tokens(1, 0, {9}, "<tool_call>{\"name\": \"f\"}");
  EXPECT_THAT(queue.cancelled, ElementsAre(1));
  queue.finish(1, 0, StopReason::cancelled);
  EXPECT_EQ(Json::parse(exchange->whole->body)["choices"][0]["finish_reason"], "tool_calls");
}

TEST_F(ServeAnswer, AsMessages) {
  start(calling(Dialect::messages, false));
  send_call(&queue);
  const Json json = Json::parse(exchange->whole->body);
  EXPECT_EQ(json["type"], "message");
  EXPECT_EQ(json["stop_reason"], "tool_use");
  EXPECT_EQ(json["usage"], Json({{"input_tokens", 1},
                                 {"cache_creation_input_tokens", 0},
                                 {"cache_read_input_tokens", 2},
                                 {"output_tokens", 6}}));
  ASSERT_EQ(json["content"].size(), 3u);
  EXPECT_EQ(json["content"][0]["thinking"], "why");
  EXPECT_EQ(json["content"][1], Json({{"type", "text"}, {"text", "so"}}));
  EXPECT_EQ(json["content"][2]["input"], Json({{"a", 1}}));
}

TEST_F(ServeAnswer, AsAStreamOfMessages) {
  start(calling(Dialect::messages, true));
  send_call(&queue);
  std::string types, json;
  for (const Json& event : exchange->read()) {
    types += event["type"].get<std::string>().substr(0, 15) + " ";
    if (event["type"] == "content_block_delta") json += event["delta"].value("partial_json", "");
  }
  EXPECT_EQ(types,
            "message_start content_block_s content_block_d content_block_s content_block_s content_block_d "
            "content_block_s content_block_s content_block_d content_block_s message_delta message_stop ");
  EXPECT_EQ(json, "{\"a\": 1}");
}

TEST_F(ServeAnswer, AsAStreamOfResponses) {
  start(calling(Dialect::responses, true));
  send_call(&queue);
  std::vector<std::string> types;
  Json last;
  int sequence = 0;
  for (const Json& event : exchange->read()) {
    EXPECT_EQ(event["sequence_number"], sequence++);
    types.push_back(event["type"]);
    last = event;
  }
  EXPECT_THAT(types, testing::IsSupersetOf({"response.created", "response.reasoning_text.delta",
                                            "response.output_text.delta", "response.output_text.done",
                                            "response.function_call_arguments.delta", "response.output_item.done"}));
  ASSERT_EQ(types.back(), "response.completed");
  const Json output = last["response"]["output"];
  ASSERT_EQ(output.size(), 3u);
  EXPECT_EQ(output[1]["content"][0]["text"], "so");
  EXPECT_EQ(output[2]["arguments"], "{\"a\": 1}");
  EXPECT_EQ(last["response"]["usage"]["input_tokens_details"]["cached_tokens"], 2);
}

TEST_F(ServeAnswer, ErrorsOfADialect) {
  queue.refusal = Error{Error::busy, "256 requests wait", "SchedulerOptions::max_queue", "later again"};
  start(calling(Dialect::messages, false));
  const Json json = Json::parse(exchange->whole->body);
  EXPECT_EQ(json["type"], "error");
  EXPECT_EQ(json["error"]["type"], "rate_limit_error");
}

TEST_F(ServeAnswer, WhereTheCacheAndTheTextPart) {
  start(Call{.kind = kText}, {*tales().tokenizer()->encode("Once upon a time", false)});
  queue.admit(1, 1, *tales().tokenizer()->encode(" again", false));
  queue.finish(1, 0, StopReason::eos);
  const Json own = Json::parse(exchange->whole->body)["kvasir"];
  EXPECT_EQ(own["differs_at"], 1);
  EXPECT_EQ(own["cache_text"], " again");
  EXPECT_THAT(own["request_text"].get<std::string>(), HasSubstr("upon a time"));
}

TEST_F(ServeAnswer, EmbeddingsAsNumbersOrBytes) {
  for (const bool base64 : {false, true}) {
    exchange = std::make_shared<FakeExchange>();
    queue = {};
    Call call{.kind = kEmbeddings};
    call.base64 = base64;
    start(call);
    Finished done;
    done.embedding = {1.5f, -2.0f};
    queue.send(1, 0, std::move(done));
    const Json json = Json::parse(exchange->whole->body);
    EXPECT_EQ(json["object"], "list");
    const Json& vector = json["data"][0]["embedding"];
    EXPECT_EQ(vector, base64 ? Json("AADAPwAAAMA=") : Json::array({1.5, -2.0}));
  }
}

}  // namespace
}  // namespace kvasir::serve
