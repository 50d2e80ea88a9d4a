// Handles calls of a model, from the body to the start of the answer. Loads models on demand and unloads idle ones.
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <random>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "serve/api/fields.h"
#include "serve/api/format.h"
#include "serve/api/prompts.h"
#include "serve/api/translate.h"
#include "serve/http/message.h"
#include "serve/service.h"

namespace kvasir::serve {
namespace {

// Returns a random seed below 2^53, which a client in JavaScript can send back exactly.
uint64_t drawn_seed() {
  static std::mt19937_64 random(std::random_device{}());
  return random() >> 11;
}

// Accepts the form type too, since curl sends it by default.
bool takes_type(const HttpRequest& request) {
  const auto found = request.headers.find("content-type");
  if (found == request.headers.end()) return true;
  constexpr std::array<std::string_view, 3> kTaken{"application/json", "text/plain",
                                                   "application/x-www-form-urlencoded"};
  return std::ranges::any_of(kTaken, [&](std::string_view type) { return found->second.starts_with(type); });
}

// Names everything that the bits of an answer depend on. With the same fingerprint, the same body with a seed gives the
// same answer.
std::string system_fingerprint(const Host& host, const SessionOptions& session) {
  std::string text =
      fmt::format("kvasir-{}-{}-{}", kNumericsVersion, host.fingerprint().substr(0, 16), session.kv_type_k);
  if (session.kv_type_v != session.kv_type_k) text += "-" + session.kv_type_v;
  if (session.window > 0) text += fmt::format(".w{}.s{}", session.window, session.sinks.value_or(kDefaultSinks));
  return text;
}

Result<Call> read_call_of(Dialect dialect, Kind kind, const Json& body, const SamplingParams& defaults, bool strict) {
  if (dialect == Dialect::openai) return read_call(kind, body, defaults, strict);
  KVASIR_TRY(Translated chat,
             dialect == Dialect::messages ? translate_messages(body, false) : translate_responses(body));
  KVASIR_TRY(Call call, read_call(kind, chat.body, defaults, strict));
  call.dialect = dialect;
  call.echo = std::move(chat.echo);
  call.ignored.insert(call.ignored.end(), chat.ignored.begin(), chat.ignored.end());
  if (call.request.choices > 1) return fail(Error::unsupported, "this API has one choice per answer", "n", "1");
  return call;
}

const char* id_prefix(const Call& call) {
  if (call.dialect == Dialect::messages) return "msg_";
  if (call.dialect == Dialect::responses) return "resp_";
  return call.kind == kChat ? "chatcmpl-" : "cmpl-";
}

int64_t created_at(const Model& model) {
  struct stat s {};
  const auto& files = model.files();
  return !files.empty() && stat(files[0].c_str(), &s) == 0 ? s.st_mtime : 0;
}

}  // namespace

// ---- models -------------------------------------------------------------------------------------------------------

Result<void> Service::open(HttpServer& server) {
  server_ = &server;
  Loaded& first = models_[0];
  KVASIR_TRY(first.host, Host::open(first.options.host, [&server](auto task) { server.post(std::move(task)); }));
  first.created = created_at(first.host->model());
  first.ctx = first.host->ctx();
  first.used = now_seconds();
  if (o_.model_ttl_s > 0) put_away_idle();
  return {};
}

void Service::with_host(Loaded& model, std::function<void(Result<std::shared_ptr<Host>>)> then) {
  model.used = now_seconds();
  if (model.host != nullptr) return then(model.host);
  model.waiting.push_back(std::move(then));
  if (model.waiting.size() > 1) return;
  opener_.post([this, &model] {
    auto opened = std::make_shared<Result<std::unique_ptr<Host>>>(
        Host::open(model.options.host, [server = server_](auto task) { server->post(std::move(task)); }));
    server_->post([&model, opened] {
      const auto waiting = std::exchange(model.waiting, {});
      if (*opened) {
        model.host = std::move(**opened);
        model.created = created_at(model.host->model());
        model.ctx = model.host->ctx();
      }
      for (const auto& next : waiting) {
        if (*opened)
          next(model.host);
        else
          next(tl::unexpected(opened->error()));
      }
    });
  });
}

void Service::put_away_idle() {
  server_->after(std::min(1.0, o_.model_ttl_s / 4), [this] {
    const double now = now_seconds();
    for (Loaded& model : models_) {
      if (model.host == nullptr) continue;
      if (model.host->under_way() > 0) model.used = now;
      if (now - model.used < o_.model_ttl_s) continue;
      metrics_.put_away(model.options.name, model.host->stats());
      end_watches(model.host.get());
      // Closing a model takes a while, so the other thread does it. Answers that hold the model keep it alive.
      opener_.post([host = std::exchange(model.host, {})]() mutable { host.reset(); });
    }
    if (!draining_) put_away_idle();
  });
}

void Service::drain(double seconds, std::function<void()> on_drained) {
  draining_ = true;
  end_watches(nullptr);
  auto left = std::make_shared<size_t>(1);
  const auto one_less = [left, on_drained = std::move(on_drained)] {
    if (--*left == 0) on_drained();
  };
  for (Loaded& model : models_)
    if (model.host != nullptr) {
      ++*left;
      model.host->drain(seconds, one_less);
    }
  one_less();
}

Service::Loaded* Service::model_of(const Json& body, std::optional<ApiError>* error) {
  const auto asked = body.is_object() ? body.find("model") : body.end();
  if (!body.is_object() || asked == body.end() || !asked->is_string()) return &models_[0];
  const auto name = asked->get<std::string>();
  for (Loaded& model : models_)
    if (model.options.name == name) return &model;
  if (!o_.strict_model) return &models_[0];
  *error = ApiError{.status = 404,
                    .code = "model_not_found",
                    .message = fmt::format("there is no model \"{}\" here", name.substr(0, 80)),
                    .param = "model"};
  return nullptr;
}

void Service::with_named(const Asked& asked, std::function<void(Loaded&, std::shared_ptr<Host>)> then) {
  const std::string& query = asked.exchange->request().query;
  constexpr std::string_view kModel = "model=";
  Json named = Json::object();
  if (query.starts_with(kModel)) named["model"] = percent_decoded(query.substr(kModel.size())).value_or("");
  std::optional<ApiError> unknown;
  Loaded* const model = model_of(named, &unknown);
  if (model == nullptr) return answer(asked, *unknown);
  with_host(*model, [this, asked, model, then = std::move(then)](Result<std::shared_ptr<Host>> host) {
    if (host) return then(*model, *host);
    answer(asked, ApiError{.status = 500, .code = "model_not_loaded", .message = host.error().message()});
  });
}

// ---- bodies -------------------------------------------------------------------------------------------------------

void Service::with_body(const Asked& asked,
                        std::function<void(Loaded&, std::shared_ptr<Host>, std::shared_ptr<const Json>)> then) {
  if (!takes_type(asked.exchange->request()))
    return answer(
        asked,
        ApiError{.status = 415, .code = "unsupported_media_type", .message = "the body must be application/json"});
  // The worker's task moves all it holds into the next one, so that the server's thread releases the exchange.
  worker_.post([this, asked = Asked(asked), then = std::move(then)]() mutable {
    auto body = std::make_shared<Result<Json>>(parse_json(asked.exchange->request().body));
    server_->post([this, asked = std::move(asked), then = std::move(then), body] {
      if (!*body) return answer(asked, api_error(body->error()));
      std::optional<ApiError> unknown;
      Loaded* model = model_of(**body, &unknown);
      if (model == nullptr) return answer(asked, *unknown);
      with_host(*model, [this, asked, then, body, model](Result<std::shared_ptr<Host>> host) {
        if (!host)
          return answer(asked, ApiError{.status = 500, .code = "model_not_loaded", .message = host.error().message()});
        then(*model, *host, std::shared_ptr<const Json>(body, &**body));
      });
    });
  });
}

void Service::call(const Asked& asked, Kind kind) {
  if (draining_)
    return answer(
        asked,
        ApiError{.status = 503, .code = "draining", .message = "this server is shutting down", .retry_after_s = 5});
  if (asked.caller->most > 0 && asked.caller->running >= asked.caller->most)
    return answer(asked,
                  ApiError{.status = 429,
                           .code = "too_many_requests",
                           .message = fmt::format("{} requests of this key are running already", asked.caller->running),
                           .retry_after_s = 1});
  Asked counted = asked;
  ++asked.caller->running;
  counted.place = std::shared_ptr<void>(nullptr, [caller = asked.caller](void*) { --caller->running; });
  with_body(counted,
            [this, counted, kind](Loaded& model, const std::shared_ptr<Host>& host, std::shared_ptr<const Json> body) {
              read(counted, kind, model, host, std::move(body));
            });
}

void Service::read(const Asked& asked, Kind kind, Loaded& model, const std::shared_ptr<Host>& host,
                   std::shared_ptr<const Json> body) {
  if (kind == kChat && host->chat().is_none())
    return answer(asked, ApiError{.code = "no_chat_template",
                                  .message = host->chat().why_none + " (try: /v1/completions)",
                                  .param = "messages"});
  worker_.post(
      [this, asked = Asked(asked), kind, &model, host = std::shared_ptr(host), body = std::move(body)]() mutable {
        auto call = std::make_shared<Result<Call>>(
            read_call_of(asked.dialect, kind, *body, host->model().sampling_defaults(), o_.strict_fields));
        auto prompts = std::make_shared<std::vector<std::vector<int>>>();
        if (*call) {
          if (auto ids = prompt_ids(&**call, host->model(), host->chat()))
            *prompts = std::move(*ids);
          else
            *call = tl::unexpected(std::move(ids).error());
        }
        server_->post([this, asked = std::move(asked), &model, host = std::move(host), call, prompts] {
          if (!*call) return answer(asked, api_error(call->error()));
          start(asked, model, host, std::move(**call), std::move(*prompts));
        });
      });
}

void Service::start(const Asked& asked, Loaded& model, std::shared_ptr<Host> host, Call call,
                    std::vector<std::vector<int>> prompts) {
  if (call.dimensions && *call.dimensions != host->model().info().hidden)
    return answer(asked, ApiError{.code = "invalid_value",
                                  .message = fmt::format("dimensions: this model's vectors have {}, not {}",
                                                         host->model().info().hidden, *call.dimensions),
                                  .param = "dimensions"});
  Request& request = call.request;
  request.owner = asked.caller->name;
  request.weight = asked.caller->weight;
  const std::string own = o_.shared_cache ? "" : asked.caller->name;
  if (!own.empty() || !request.salt.empty()) request.salt = fmt::format("{}:{}{}", own.size(), own, request.salt);
  if (!call.seeded) request.options.sampling.seed = drawn_seed();
  int& most = request.options.max_tokens;
  if (o_.max_output > 0) most = most < 0 ? o_.max_output : std::min(most, o_.max_output);
  const std::string name = model.options.name;
  ReplyOptions options{
      .envelope = {.id = new_id(id_prefix(call)),
                   .created = std::time(nullptr),
                   .model = name,
                   .fingerprint = system_fingerprint(*host, model.options.host.scheduler.session)},
      .headers = asked.headers,
      .now = now_seconds,
      .after = [server = server_](double seconds, auto task) { server->after(seconds, std::move(task)); }};
  options.on_token = [this, name](double first, double between) {
    if (first >= 0) metrics_.first_token(name, first);
    if (between >= 0) metrics_.between_tokens(name, between);
  };
  options.on_over = [this, asked = Asked(asked), name, host](const AnswerRecord& record) mutable {
    metrics_.over(name, record);
    log(asked, name, record);
    asked.place.reset();
  };
  Host& queue = *host;
  Answer::start(asked.exchange, queue, std::move(call), std::move(prompts), std::move(options));
}

}  // namespace kvasir::serve
