// Turns the scheduler's events into the client's answer, whole or as a stream. Everything here runs on the thread of
// the HTTP server.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <kvasir/scheduler.h>

#include "serve/api/errors.h"
#include "serve/api/writer.h"
#include "serve/http/http_server.h"

namespace kvasir::serve {

/// Accepts requests. Calls their sinks with events, on this thread.
class RequestQueue {
 public:
  using Sink = std::function<void(RequestEvent& event)>;
  virtual ~RequestQueue() = default;
  virtual Result<RequestId> submit(Request request, Sink sink) = 0;
  virtual void cancel(RequestId id, std::optional<int> choice = {}) = 0;
  virtual int ctx() const = 0;
  virtual const Model& model() const = 0;
};

/// The figures of a finished answer, for the log and the metrics.
struct AnswerRecord {
  int status = 200;
  std::string error_code = {};
  Usage usage = {};
  bool streamed = false, gone = false;
  int preemptions = 0;
  double queued_s = 0, first_token_s = 0, total_s = 0;
  std::vector<std::string> ignored = {};
};

struct ReplyOptions {
  Envelope envelope;
  std::vector<std::pair<std::string, std::string>> headers = {};  ///< of the HTTP answer
  std::function<double()> now = {};                               ///< a clock in seconds
  std::function<void(double seconds, std::function<void()>)> after = {};
  std::function<void(const AnswerRecord&)> on_over = {};
  /// Called with the seconds to the first token, or those since the token before; the other one is negative.
  std::function<void(double first, double between)> on_token = {};
};

class Answer : public std::enable_shared_from_this<Answer> {
 public:
  /// Submits a request for each of `prompts`. Answers the exchange when all have ended, or as a stream.
  static void start(std::shared_ptr<Exchange> exchange, RequestQueue& queue, Call call,
                    std::vector<std::vector<int>> prompts, ReplyOptions options);

 private:
  struct Asked {
    RequestId id = 0;
    bool open = false;
    std::optional<Admitted> admitted = {};
  };

  Answer(std::shared_ptr<Exchange> exchange, RequestQueue& queue, Call call, ReplyOptions options);
  void submit(std::vector<std::vector<int>> prompts);
  void see(size_t prompt, RequestEvent& event);
  void see_tokens(size_t prompt, int index, Event& event);
  void parse(size_t prompt, int index, size_t tokens, const std::string& text);
  Choice& choice_at(size_t prompt, int index);
  void end_choice(size_t prompt, Choice* choice, Finished&& done);
  void fail_with(const ApiError& error);
  void cancel_all();
  void begin_stream();
  void ping_later();
  void answer_whole();
  void over(int status, const std::string& code);
  StreamPart next();
  HttpAnswer head() const;
  Usage usage() const;
  Json own_json() const;
  AnswerFacts facts();
  Json embeddings_json() const;

  std::shared_ptr<Exchange> exchange_;
  RequestQueue& queue_;
  Call call_;
  ReplyOptions o_;
  std::unique_ptr<AnswerWriter> writer_;
  std::vector<std::vector<int>> prompts_;  // token ids
  std::vector<Asked> asked_;               // [prompts]
  std::vector<Choice> choices_;            // [prompts][n]
  size_t left_ = 0;                        // number of choices that have not ended
  double started_ = 0, last_sent_ = 0;
  bool streaming_ = false, ended_ = false, ping_ = false;
  std::optional<ApiError> stream_error_;
};

}  // namespace kvasir::serve
