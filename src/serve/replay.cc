// Sends the requests of a trace and collects figures from the answers. replay_answer.h parses the answers.
#include "serve/replay.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "base/clock.h"
#include "serve/http/http_client.h"
#include "serve/replay_answer.h"

namespace kvasir::serve {
namespace {

constexpr size_t kErrorBytes = 64 << 10;
constexpr uint64_t kSeed = 1;

// ---- the server's model -------------------------------------------------------------------------------------------

struct Served {
  std::string model, prefix;  ///< prefix: of paths, ends in "/v1"
  int vocab = 0;
};

/// Returns the body of a GET. Runs the client's loop until it is there.
Result<std::string> get(HttpClient& client, const std::string& path) {
  int status = 0;
  std::string body;
  Result<void> whole;
  HttpListener listener;
  listener.on_head = [&](int told) { status = told; };
  listener.on_body = [&](std::string_view bytes) { body += bytes; };
  listener.on_end = [&](Result<void> told) { whole = std::move(told); };
  client.send({.path = path}, std::move(listener));
  client.run();
  KVASIR_CHECK(whole);
  if (status != 200) return fail(Error::io, fmt::format("status {}: {}", status, told_error(body)), path);
  return body;
}

/// Returns the entry of the model `name`, or of the first model if `name` is empty; null if there is none.
Json entry_of(const std::string& body, const std::string& name) {
  const auto json = parse_json(body);
  const Json* list = json ? member(*json, "data") : nullptr;
  if (list == nullptr || !list->is_array()) return {};
  for (const Json& model : *list) {
    const Json* id = member(model, "id");
    if (id != nullptr && id->is_string() && (name.empty() || *id == name)) return model;
  }
  return {};
}

/// Sets the model and the vocabulary if the options do not.
Result<void> complete(const Json& entry, const std::string& url, Served* served) {
  if (served->model.empty()) {
    const Json* id = member(entry, "id");
    if (id == nullptr) return fail(Error::not_found, "the server lists no model", url, "ReplayOptions::model");
    served->model = id->get<std::string>();
  }
  const Json* meta = member(entry, "meta");
  if (served->vocab == 0 && meta != nullptr) served->vocab = count_in(*meta, "n_vocab").value_or(0);
  if (served->vocab > 0) return {};
  return fail(Error::bad_argument, fmt::format("the server does not report how many token ids '{}' has", served->model),
              url, "ReplayOptions::vocab");
}

Result<Served> ask(HttpClient& client, const HttpUrl& url, const ReplayOptions& options) {
  Served served{.model = options.model, .prefix = url.path, .vocab = options.vocab};
  if (!served.prefix.ends_with("/v1")) served.prefix += "/v1";
  if (!served.model.empty() && served.vocab > 0) return served;
  KVASIR_TRY(const std::string body, get(client, served.prefix + "/models"));
  KVASIR_CHECK(complete(entry_of(body, served.model), options.url, &served));
  return served;
}

// ---- the replay ---------------------------------------------------------------------------------------------------

class Player {
 public:
  Player(const ReplayOptions& options, HttpClient& client, Served served)
      : trace_(options.trace),
        client_(client),
        served_(std::move(served)),
        replay_(options.trace, served_.vocab),
        start_(now_seconds()) {}

  ReplayResult play() {
    send_due();
    if (!replay_.is_over()) client_.run();
    result_.report.elsewhere = true;
    result_.report.reused_told = cached_told_;
    replay_.report(&result_.report, ended_);
    return std::move(result_);
  }

 private:
  struct Stream {
    size_t index;
    uint64_t call = 0;
    int status = 0;
    std::string refusal = {};
    StreamedAnswer answer;
    bool over = false;
  };

  double now() const { return now_seconds() - start_; }
  SchedulerStats& stats() { return result_.report.stats; }

  void send_due() {
    while (const auto i = replay_.take_due(now())) send(*i);
    const auto next = replay_.next_due();
    if (!next || *next >= wakes_at_) return;
    wakes_at_ = *next;
    client_.after(std::max(0.0, *next - now()), [this] {
      wakes_at_ = std::numeric_limits<double>::infinity();
      send_due();
    });
  }

  std::string body_of(size_t i) const {
    const TraceRequest& t = trace_[i];
    Json body = {{"model", served_.model},
                 {"prompt", replay_.prompt(i)},
                 {"max_tokens", t.max_tokens},
                 {"stream", true},
                 {"stream_options", {{"include_usage", true}}},
                 {"seed", kSeed},
                 {"ignore_eos", true},
                 {"n", t.choices},
                 {"return_token_ids", true}};
    if (t.choices == 1) body["temperature"] = 0;  // with temperature 0, some servers allow only one choice
    if (t.priority != 0) body["priority"] = t.priority;
    return to_text(body);
  }

  void send(size_t i) {
    const auto stream = std::make_shared<Stream>(Stream{.index = i, .answer = StreamedAnswer(trace_[i].choices)});
    HttpListener listener;
    listener.on_head = [stream](int status) { stream->status = status; };
    listener.on_body = [this, stream](std::string_view bytes) { see(*stream, bytes); };
    listener.on_end = [this, stream](const Result<void>& whole) { see_end(*stream, whole); };
    ++stats().submitted;
    stream->call = client_.send({.method = "POST", .path = served_.prefix + "/completions", .body = body_of(i)},
                                std::move(listener));
  }

  void see(Stream& s, std::string_view bytes) {
    if (s.over) return;
    if (s.status != 200) {
      s.refusal += bytes.substr(0, kErrorBytes - std::min(kErrorBytes, s.refusal.size()));
      return;
    }
    const auto news = s.answer.read(bytes);
    if (!news) return end_failed(s, news.error());
    const double moment = now();
    bool leaves = false;
    for (const auto& tokens : *news) leaves |= replay_.see_tokens(s.index, tokens.choice, tokens.count, moment);
    if (leaves) return leave(s);
    if (s.answer.is_done()) end_well(s);
  }

  void see_end(Stream& s, const Result<void>& whole) {
    if (s.over) return;
    if (s.status != 200 && s.status != 0)
      return end_failed(s, Error{Error::io, fmt::format("status {}: {}", s.status, told_error(s.refusal)), {}, {}});
    if (!whole) return end_failed(s, whole.error());
    if (!s.answer.is_complete())
      return end_failed(s, Error{Error::damaged, "the stream ends before the answer does", {}, {}});
    end_well(s);
  }

  void leave(Stream& s) {
    client_.cancel(s.call);
    ++stats().cancelled;
    end(s, true);
  }

  void end_well(Stream& s) {
    ++stats().finished;
    if (const auto& usage = s.answer.usage()) {
      cached_told_ |= usage->cached.has_value();
      stats().reused += usage->cached.value_or(0);
      stats().computed += usage->prompt - usage->cached.value_or(0);
    }
    end(s, true);
  }

  void end_failed(Stream& s, const Error& error) {
    client_.cancel(s.call);
    ++stats().failed;
    if (result_.first_failure.empty())
      result_.first_failure = fmt::format("'{}': {}", trace_[s.index].name, error.message());
    end(s, false);
  }

  void end(Stream& s, bool well) {
    s.over = true;
    stats().generated += s.answer.generated();
    ended_ = now();
    if (well)
      replay_.see_end(s.index, answer_of(s), ended_);
    else
      replay_.see_failure(s.index, ended_);
    send_due();
    if (replay_.is_over()) client_.stop();  // some servers do not close the connection
  }

  /// Returns the ids of an answer. If the server does not report ids, makes up the same number of them, so that later
  /// prompts have the right length.
  std::vector<int> answer_of(const Stream& s) const {
    if (!s.answer.ids().empty()) return s.answer.ids();
    return trace_ids({.tokens = s.answer.answer_tokens(), .salt = -1 - static_cast<int>(s.index)}, served_.vocab);
  }

  const std::vector<TraceRequest>& trace_;
  HttpClient& client_;
  Served served_;
  TraceReplay replay_;
  ReplayResult result_;
  double start_, ended_ = 0;
  double wakes_at_ = std::numeric_limits<double>::infinity();
  bool cached_told_ = false;
};

}  // namespace

Result<ReplayResult> replay(const ReplayOptions& options) {
  KVASIR_TRY(const HttpUrl url, parse_url(options.url));
  KVASIR_TRY(const auto client, HttpClient::create(url));
  KVASIR_TRY(Served served, ask(*client, url, options));
  ReplayResult result = Player(options, *client, std::move(served)).play();
  if (result.report.stats.failed > 0 && result.report.stats.failed == result.report.requests)
    return fail(Error::io, "every request failed; the first " + result.first_failure, options.url);
  return result;
}

}  // namespace kvasir::serve
