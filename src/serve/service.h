// The service: routes requests by path and method, checks keys and origins, and loads models. http/ has the sockets;
// api/answer produces answers. Everything runs on the thread of the HTTP server, except tasks of the two workers.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "serve/api/answer.h"
#include "serve/host.h"
#include "serve/http/http_server.h"
#include "serve/keys.h"
#include "serve/metrics.h"
#include "serve/worker.h"

namespace kvasir::serve {

struct ServiceOptions {
  struct Model {
    std::string name;  ///< the name that clients use
    HostOptions host;
  };
  std::vector<Model> models;      ///< the first one also serves unknown names, unless strict_model
  double model_ttl_s = 0;         ///< an idle model is unloaded after this time; 0 for never
  bool strict_model = false;      ///< refuse unknown model names
  bool strict_fields = false;     ///< refuse unknown fields
  bool shared_cache = false;      ///< reuse the cache across API keys
  bool page = true;               ///< serve the page at "/"
  bool vllm_names = false;        ///< also export metrics under vLLM's names
  bool local_only = true;         ///< the Host header must be a local name (against DNS rebinding)
  int max_output = 0;             ///< upper bound on an answer's tokens; 0 for the context alone
  std::vector<std::string> cors;  ///< allowed origins, in addition to local ones
  Keys keys = {};
  std::function<void(const std::string& line)> log = {};
};

class Service {
 public:
  explicit Service(ServiceOptions options);
  ~Service();

  /// Opens the first model now, others at their first request. `server` runs this service and must outlive it. Errors:
  /// those of Host::open().
  Result<void> open(HttpServer& server);
  /// The server's HttpHandler.
  void handle(const std::shared_ptr<Exchange>& exchange);
  /// Refuses new calls. Calls `on_drained` once all running requests have ended, after at most `seconds`.
  void drain(double seconds, std::function<void()> on_drained);
  const Model& first_model() const { return models_[0].host->model(); }
  int first_ctx() const { return models_[0].host->ctx(); }

 private:
  struct Loaded {
    ServiceOptions::Model options;
    std::shared_ptr<Host> host = {};
    std::vector<std::function<void(Result<std::shared_ptr<Host>>)>> waiting = {};  // not empty while it is being opened
    int64_t created = 0;                                                           // time of its file
    int ctx = 0;                                                                   // 0 until it is opened once
    double used = 0;                                                               // time of the last request
  };
  /// A request, with the data that every answer to it needs.
  struct Asked {
    std::shared_ptr<Exchange> exchange;
    std::shared_ptr<Caller> caller;
    std::string id;
    std::vector<std::pair<std::string, std::string>> headers;
    double came = 0;
    Dialect dialect = Dialect::openai;
    std::shared_ptr<void> place = {};  ///< counts among the key's concurrent requests until the last copy is destroyed
  };
  using Route = void (Service::*)(const Asked& asked);
  struct Entry {
    const char* method;
    const char* path;
    Route route;
    bool open = false;  ///< needs no key
    Dialect dialect = Dialect::openai;
  };
  static const std::vector<Entry>& entries();

  // Routing.
  bool may_ask(const HttpRequest& request) const;
  std::optional<ApiError> refused(const HttpRequest& request, bool open, std::shared_ptr<Caller>* caller) const;
  std::vector<std::pair<std::string, std::string>> headers_for(const HttpRequest& request, const std::string& id) const;
  void preflight(const std::shared_ptr<Exchange>& exchange);
  void answer(const Asked& asked, HttpAnswer answer);
  void answer(const Asked& asked, const ApiError& error);
  /// Answers with the result of `make`, which the worker computes.
  void answer_later(const Asked& asked, std::function<Result<Json>(const Json& body, const Host& host)> make);
  void answer(const Asked& asked, const Json& json) { answer(asked, HttpAnswer{.body = to_text(json)}); }
  void log(const Asked& asked, const std::string& model, const AnswerRecord& record) const;

  // Calls of a model.
  void chat(const Asked& asked) { call(asked, kChat); }
  void completions(const Asked& asked) { call(asked, kText); }
  void embeddings(const Asked& asked) { call(asked, kEmbeddings); }
  void count_tokens(const Asked& asked);
  void call(const Asked& asked, Kind kind);
  void read(const Asked& asked, Kind kind, Loaded& model, const std::shared_ptr<Host>& host,
            std::shared_ptr<const Json> body);
  void start(const Asked& asked, Loaded& model, std::shared_ptr<Host> host, Call call,
             std::vector<std::vector<int>> prompts);
  /// Parses the body and opens its model, then calls `then`. Answers errors itself.
  void with_body(const Asked& asked,
                 std::function<void(Loaded&, std::shared_ptr<Host>, std::shared_ptr<const Json>)> then);
  Loaded* model_of(const Json& body, std::optional<ApiError>* error);
  /// Opens the model that the query names ("model=NAME"), else the first one, and calls `then`. Answers errors itself.
  void with_named(const Asked& asked, std::function<void(Loaded&, std::shared_ptr<Host>)> then);
  void with_host(Loaded& model, std::function<void(Result<std::shared_ptr<Host>>)> then);
  void put_away_idle();

  // About the service.
  void page(const Asked& asked);
  void tokenize(const Asked& asked);
  void detokenize(const Asked& asked);
  void apply_template(const Asked& asked);
  void models(const Asked& asked);
  void model(const Asked& asked);
  void props(const Asked& asked);
  void scheduler(const Asked& asked);
  void cache_events(const Asked& asked);
  void health(const Asked& asked);
  void ready(const Asked& asked);
  void metrics(const Asked& asked);
  Json model_json(const Loaded& model) const;
  Json props_json(const Loaded& model) const;
  struct Watch;
  void watch(const Asked& asked, Loaded& model, const std::shared_ptr<Host>& host);
  void end_watches(const Host* of);

  ServiceOptions o_;
  HttpServer* server_ = nullptr;
  std::vector<Loaded> models_;
  Metrics metrics_;
  std::vector<std::weak_ptr<Watch>> watches_;
  bool draining_ = false;
  const double started_ = now_seconds();
  Worker worker_;  // parses and tokenizes
  Worker opener_;  // opens models
};

}  // namespace kvasir::serve
