// The service: which path and method is answered by what, who may ask, and the models behind it. Sockets are http/'s;
// answers over time are api/answer's. All in the thread of the HTTP server, but for what its worker does.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "serve/api/answer.h"
#include "serve/host.h"
#include "serve/http/http_server.h"
#include "serve/keys.h"
#include "serve/metrics.h"
#include "serve/worker.h"

namespace kvasir::serve {

struct ServiceOptions {
  struct Model {
    std::string name;  ///< as clients call it
    HostOptions host;
  };
  std::vector<Model> models;      ///< the first is the one that unknown names mean
  double model_ttl_s = 0;         ///< a model that nobody asked for so long is put away; 0: never
  bool strict_model = false;      ///< unknown names are refused
  bool strict_fields = false;     ///< unknown fields are refused
  bool shared_cache = false;      ///< what is kept for one key is used for another
  bool vllm_names = false;        ///< of metrics
  bool local_only = true;         ///< the Host header must be a local name (against DNS rebinding)
  int max_output = 0;             ///< the most tokens of an answer; 0: the context
  std::vector<std::string> cors;  ///< origins besides local ones
  Keys keys = {};
  std::function<void(const std::string& line)> log = {};
};

class Service {
 public:
  explicit Service(ServiceOptions options);
  ~Service();

  /// Opens the first model now; the others when they are asked for. `server`: outlives this, and runs it.
  Result<void> open(HttpServer& server);
  /// The HttpHandler.
  void handle(const std::shared_ptr<Exchange>& exchange);
  /// From now on nothing is taken; `on_drained` when what is under way has ended, at most in `seconds`.
  void drain(double seconds, std::function<void()> on_drained);
  const Model& first_model() const { return models_[0].host->model(); }
  int first_ctx() const { return models_[0].host->ctx(); }

 private:
  struct Loaded {
    ServiceOptions::Model options;
    std::shared_ptr<Host> host = {};
    std::vector<std::function<void(Result<std::shared_ptr<Host>>)>> waiting = {};  // not empty: it is being opened
    int64_t created = 0;                                                           // of its file
    int ctx = 0;                                                                   // known once it was opened
    double used = 0;                                                               // when somebody asked for it last
  };
  /// A request with what is the same for every answer to it.
  struct Asked {
    std::shared_ptr<Exchange> exchange;
    std::shared_ptr<Caller> caller;
    std::string id;
    std::vector<std::pair<std::string, std::string>> headers;
    double came = 0;
    Dialect dialect = Dialect::openai;
    std::shared_ptr<void> place = {};  ///< among the requests of the key at a time; given up by the last copy
  };
  using Route = void (Service::*)(const Asked& asked);
  struct Entry {
    const char* method;
    const char* path;
    Route route;
    bool open = false;  ///< to everybody, without a key
    Dialect dialect = Dialect::openai;
  };
  static const std::vector<Entry>& entries();

  // Routing.
  bool may_ask(const std::string& origin) const;
  std::optional<ApiError> refused(const HttpRequest& request, bool open, std::shared_ptr<Caller>* caller) const;
  std::vector<std::pair<std::string, std::string>> headers_for(const HttpRequest& request, const std::string& id) const;
  void preflight(const std::shared_ptr<Exchange>& exchange);
  void answer(const Asked& asked, HttpAnswer answer);
  void answer(const Asked& asked, const ApiError& error);
  /// What `make` gives, computed by the worker.
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
  /// With the body as JSON and its model, opened; errors are answered.
  void with_body(const Asked& asked,
                 std::function<void(Loaded&, std::shared_ptr<Host>, std::shared_ptr<const Json>)> then);
  Loaded* model_of(const Json& body, std::optional<ApiError>* error);
  void with_host(Loaded& model, std::function<void(Result<std::shared_ptr<Host>>)> then);
  void put_away_idle();

  // About the service.
  void tokenize(const Asked& asked);
  void detokenize(const Asked& asked);
  void apply_template(const Asked& asked);
  void models(const Asked& asked);
  void model(const Asked& asked);
  void props(const Asked& asked);
  void scheduler(const Asked& asked);
  void health(const Asked& asked);
  void ready(const Asked& asked);
  void metrics(const Asked& asked);
  Json model_json(const Loaded& model) const;

  ServiceOptions o_;
  HttpServer* server_ = nullptr;
  std::vector<Loaded> models_;
  Metrics metrics_;
  bool draining_ = false;
  Worker worker_;  // parses and tokenises
  Worker opener_;  // opens models
};

}  // namespace kvasir::serve
