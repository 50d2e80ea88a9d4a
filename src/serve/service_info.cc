// Handles requests about the service itself: models, tokens of a text, health, metrics.
#include <limits>

#include <fmt/format.h>

#include "base/clock.h"
#include "serve/api/field_values.h"
#include "serve/api/fields.h"
#include "serve/api/prompts.h"
#include "serve/api/translate.h"
#include "serve/cache_events.h"
#include "serve/page/page.h"
#include "serve/service.h"

namespace kvasir::serve {
namespace {

constexpr double kStuck = 60;  // seconds without a pass while work waits

Error of_field(Error error, const char* field) {
  error.where = field;
  return error;
}

// Renders the messages of a body.
Result<ChatText> conversation_text(const Json& body, const Host& host) {
  KVASIR_TRY(const Call call, read_call(kChat, body, host.model().sampling_defaults(), false));
  std::vector<std::string> stops;
  return render_conversation(call, host.chat(), &stops);
}

// /apply-template of llama-server: renders messages to the text of their prompt.
Result<Json> prompt_json(const Json& body, const Host& host) {
  if (!body.is_object()) return fail(Error::bad_argument, "the body is not a JSON object", "body");
  KVASIR_TRY(const ChatText text, conversation_text(body, host));
  Json data = Json::array();
  for (const TextSpan& span : text.data) data.push_back({span.begin, span.end});
  return Json{{"prompt", text.text}, {"kvasir", {{"data", data}}}};
}

// /tokenize with the names of llama-server (content, add_special, with_pieces) or of vLLM (prompt or messages,
// add_special_tokens, return_token_strs).
Result<Json> tokens_json(const Json& body, const Host& host) {
  if (!body.is_object()) return fail(Error::bad_argument, "the body is not a JSON object", "body");
  const auto& tokenizer = host.model().tokenizer();
  if (tokenizer == nullptr) return fail(Error::unsupported, "this model came without a tokenizer", "content");
  std::vector<int> ids;
  if (body.contains("messages")) {
    KVASIR_TRY(const ChatText text, conversation_text(body, host));
    KVASIR_TRY(ids, conversation_ids(text, host.chat(), *tokenizer));
  } else {
    const char* name = body.contains("prompt") ? "prompt" : "content";
    const auto text = as_string(body.value(name, Json()));
    if (!text) return tl::unexpected(of_field(text.error(), name));
    // By default llama-server adds no special tokens, and vLLM does.
    const bool is_vllm = !body.contains("content");
    const Json special = body.value(is_vllm ? "add_special_tokens" : "add_special", Json(is_vllm));
    KVASIR_TRY(ids, tokenizer->encode(*text, special == true));
  }
  Json tokens = Json::array(), texts = Json::array();
  const bool pieces = body.value("with_pieces", Json(false)) == true;
  for (const int id : ids) {
    tokens.push_back(pieces ? Json{{"id", id}, {"piece", tokenizer->token_text(id)}} : Json(id));
    texts.push_back(tokenizer->piece(id));
  }
  Json json = {{"tokens", tokens}, {"count", ids.size()}, {"max_model_len", host.ctx()}};
  if (body.value("return_token_strs", Json(false)) == true) json["token_strs"] = texts;
  return json;
}

// /v1/messages/count_tokens of Anthropic: the exact number of tokens of this request's prompt.
Result<Json> count_json(const Json& body, const Host& host) {
  const auto& tokenizer = host.model().tokenizer();
  if (tokenizer == nullptr) return fail(Error::unsupported, "this model came without a tokenizer", "messages");
  KVASIR_TRY(const Translated chat, translate_messages(body, true));
  KVASIR_TRY(const ChatText text, conversation_text(chat.body, host));
  KVASIR_TRY(const std::vector<int> ids, conversation_ids(text, host.chat(), *tokenizer));
  return Json{{"input_tokens", ids.size()}};
}

Result<Json> text_json(const Json& body, const Host& host) {
  if (!body.is_object()) return fail(Error::bad_argument, "the body is not a JSON object", "body");
  const auto& tokenizer = host.model().tokenizer();
  if (tokenizer == nullptr) return fail(Error::unsupported, "this model came without a tokenizer", "tokens");
  const auto ids = as_ids(body.value("tokens", Json()));
  if (!ids) return tl::unexpected(of_field(ids.error(), "tokens"));
  const auto text = tokenizer->decode(*ids);
  if (!text) return tl::unexpected(of_field(text.error(), "tokens"));
  return Json{{"content", *text}, {"prompt", *text}};
}

Json sampling_json(const SamplingParams& params) {
  Json json = {{"temperature", params.temperature}};
  for (const SamplerInfo& sampler : samplers())
    for (const SamplerParam& param : sampler.params) {
      const double value = value_of(params, param);
      json[std::string(param.name)] = param.whole ? Json(static_cast<int64_t>(value)) : Json(value);
    }
  return json;
}

Json scheduler_json(const SchedulerStats& s) {
  const bool limited = s.kv_capacity != std::numeric_limits<size_t>::max();
  return {{"running", s.running},
          {"waiting", s.waiting},
          {"submitted", s.submitted},
          {"finished", s.finished},
          {"failed", s.failed},
          {"cancelled", s.cancelled},
          {"prompt_tokens_reused", s.reused},
          {"prompt_tokens_computed", s.computed},
          {"tokens_recomputed", s.recomputed},
          {"tokens_generated", s.generated},
          {"tokens_guessed", s.guessed},
          {"tokens_accepted", s.accepted},
          {"preemptions", s.preemptions},
          {"passes", s.passes},
          {"pass_tokens", s.pass_tokens},
          {"kv_bytes", s.kv_used},
          {"kv_capacity", limited ? Json(s.kv_capacity) : Json()}};
}

}  // namespace

void Service::answer_later(const Asked& asked, std::function<Result<Json>(const Json& body, const Host& host)> make) {
  with_body(asked, [this, asked, make = std::move(make)](Loaded&, const std::shared_ptr<Host>& host,
                                                         const std::shared_ptr<const Json>& body) {
    worker_.post([this, asked = Asked(asked), host = std::shared_ptr(host), body, make]() mutable {
      auto json = std::make_shared<Result<Json>>(make(*body, *host));
      server_->post([this, asked = std::move(asked), host = std::move(host), json] {
        *json ? answer(asked, **json) : answer(asked, api_error(json->error()));
      });
    });
  });
}

void Service::tokenize(const Asked& asked) { answer_later(asked, tokens_json); }
void Service::apply_template(const Asked& asked) { answer_later(asked, prompt_json); }
void Service::count_tokens(const Asked& asked) { answer_later(asked, count_json); }

void Service::detokenize(const Asked& asked) {
  with_body(asked, [this, asked](Loaded&, const std::shared_ptr<Host>& host, const std::shared_ptr<const Json>& body) {
    const auto json = text_json(*body, *host);
    json ? answer(asked, *json) : answer(asked, api_error(json.error()));
  });
}

Json Service::model_json(const Loaded& model) const {
  Json json = {{"id", model.options.name},
               {"object", "model"},
               {"created", model.created},
               {"owned_by", "kvasir"},
               {"loaded", model.host != nullptr}};
  if (model.ctx > 0) json["max_model_len"] = model.ctx;
  if (model.host == nullptr) return json;
  const ModelInfo& info = model.host->model().info();
  json["meta"] = {{"n_vocab", info.vocab},
                  {"n_ctx_train", info.max_ctx},
                  {"n_embd", info.hidden},
                  {"n_params", info.parameters},
                  {"size", info.weights_bytes}};
  return json;
}

// The browser keeps the page and asks each time whether it is the same.
void Service::page(const Asked& asked) {
  if (!o_.page)
    return answer(asked, ApiError{.status = 404, .code = "unknown_url", .message = "this server has no page"});
  HttpAnswer html{.content_type = "text/html; charset=utf-8",
                  .headers = {{"ETag", std::string(kPageTag)},
                              {"Cache-Control", "no-cache"},
                              {"Content-Security-Policy", fmt::format("{}; frame-ancestors 'none'", kPagePolicy)},
                              {"Referrer-Policy", "no-referrer"},
                              {"X-Content-Type-Options", "nosniff"}}};
  const auto& sent = asked.exchange->request().headers;
  const auto known = sent.find("if-none-match");
  if (known != sent.end() && known->second.find(kPageTag) != std::string::npos)
    html.status = 304;
  else
    html.body = kPage;
  answer(asked, std::move(html));
}

void Service::models(const Asked& asked) {
  Json list = Json::array();
  for (const Loaded& model : models_) list.push_back(model_json(model));
  answer(asked, Json{{"object", "list"}, {"data", list}});
}

void Service::model(const Asked& asked) {
  const std::string& path = asked.exchange->request().path;
  const std::string name = path.substr(path.find("/models/") + 8);
  for (const Loaded& model : models_)
    if (model.options.name == name) return answer(asked, model_json(model));
  answer(asked, ApiError{.status = 404,
                         .code = "model_not_found",
                         .message = fmt::format("there is no model \"{}\" here", name.substr(0, 80)),
                         .param = "model"});
}

void Service::props(const Asked& asked) {
  if (asked.exchange->request().query.empty()) return answer(asked, props_json(models_[0]));
  with_named(asked, [this, asked](Loaded& model, const std::shared_ptr<Host>&) { answer(asked, props_json(model)); });
}

Json Service::props_json(const Loaded& model) const {
  Json json = {{"model_alias", model.options.name},
               {"build_info", fmt::format("kvasir {} numerics {}", kVersion, kNumericsVersion)},
               {"total_slots", model.options.host.scheduler.max_sequences},
               {"chat_template", ""},
               {"chat_format", Json()}};
  json["default_generation_settings"] = {{"n_ctx", model.ctx}};
  if (model.host != nullptr) {
    json["default_generation_settings"]["params"] = sampling_json(model.host->model().sampling_defaults());
    const ChatFormat& chat = model.host->chat();
    if (chat.chat_template != nullptr) json["chat_template"] = chat.chat_template->source();
    if (!chat.is_none()) json["chat_format"] = chat.is_plain ? "plain" : "template";
    const SessionOptions& session = model.options.host.scheduler.session;
    json["model_fingerprint"] = model.host->fingerprint();
    json["cache"] = {{"layout", session.layout}, {"kv_type_k", session.kv_type_k}, {"kv_type_v", session.kv_type_v}};
  }
  return json;
}

void Service::scheduler(const Asked& asked) {
  Json all = Json::object();
  for (const Loaded& model : models_)
    if (model.host != nullptr) all[model.options.name] = scheduler_json(model.host->stats());
  answer(asked, Json{{"connections", server_->connections()}, {"models", all}});
}

// ---- the cache, live ----------------------------------------------------------------------------------------------

// A viewer's stream. It sends the difference between what it sent last and the latest view, so a slow reader misses no
// change and holds no memory.
struct Service::Watch {
  const Host* host;
  std::shared_ptr<Exchange> exchange;
  CacheEvents events;
  std::shared_ptr<OnCacheView> viewer = {};  // views come as long as this lives
  std::shared_ptr<const CacheView> latest = {};
  bool over = false;

  StreamPart next() {
    if (latest == nullptr) return {.last = over};
    const Json event = events.next(std::exchange(latest, {}));
    return {.bytes = "data: " + to_text(event) + "\n\n"};
  }
};

void Service::cache_events(const Asked& asked) {
  with_named(asked, [this, asked](Loaded& model, const std::shared_ptr<Host>& host) { watch(asked, model, host); });
}

void Service::watch(const Asked& asked, Loaded& model, const std::shared_ptr<Host>& host) {
  const SchedulerOptions& scheduler = model.options.host.scheduler;
  const std::string owner = o_.shared_cache ? "" : asked.caller->name;
  const auto block = host->engine().kv_bytes(scheduler.session, 1);
  auto watch = std::make_shared<Watch>(Watch{host.get(), asked.exchange,
                                             CacheEvents({.model = model.options.name,
                                                          .layout = scheduler.session.layout,
                                                          .block_bytes = block.value_or(0),
                                                          .capacity = host->stats().kv_capacity,
                                                          .step_ms = scheduler.step_ms,
                                                          .started = started_,
                                                          .owner = owner,
                                                          .salt = fmt::format("{}:{}", owner.size(), owner),
                                                          .tokenizer = host->model().tokenizer()})});
  watch->viewer = std::make_shared<OnCacheView>([weak = std::weak_ptr(watch)](std::shared_ptr<const CacheView> view) {
    const auto open = weak.lock();
    if (open == nullptr) return;
    open->events.note(*view);
    open->latest = std::move(view);
    open->exchange->wake();
  });
  std::erase_if(watches_, [](const auto& gone) { return gone.expired(); });
  watches_.push_back(watch);
  auto headers = asked.headers;
  headers.emplace_back("Cache-Control", "no-store");
  asked.exchange->on_gone([watch] { watch->viewer.reset(); });
  asked.exchange->stream({.content_type = "text/event-stream; charset=utf-8", .headers = std::move(headers)},
                         [watch] { return watch->next(); });
  host->watch(watch->viewer);
}

// Ends the streams of a model, or all with null.
void Service::end_watches(const Host* of) {
  for (const auto& weak : watches_) {
    const auto watch = weak.lock();
    if (watch == nullptr || (of != nullptr && watch->host != of)) continue;
    watch->over = true;
    watch->viewer.reset();
    watch->exchange->wake();
  }
}

void Service::health(const Asked& asked) {
  for (const Loaded& model : models_)
    if (model.host != nullptr && !model.host->is_alive(now_seconds(), kStuck))
      return answer(asked, ApiError{.status = 503,
                                    .code = "stuck",
                                    .message = "requests are pending, and no forward pass has ended for a minute"});
  answer(asked, Json{{"status", "ok"}});
}

void Service::ready(const Asked& asked) {
  if (draining_)
    return answer(
        asked,
        ApiError{.status = 503, .code = "draining", .message = "this server is shutting down", .retry_after_s = 5});
  answer(asked, Json{{"status", "ready"}});
}

void Service::metrics(const Asked& asked) {
  std::vector<Metrics::ModelState> states;
  for (const Loaded& model : models_)
    if (model.host != nullptr) states.push_back({model.options.name, model.host->stats()});
  answer(asked, HttpAnswer{.content_type = "text/plain; version=0.0.4; charset=utf-8",
                           .body = metrics_.text(states, server_->connections())});
}

}  // namespace kvasir::serve
