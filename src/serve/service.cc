// Routing of requests by path and method, checks of keys and origins, and the log line.
#include "serve/service.h"

#include <strings.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "serve/api/format.h"

namespace kvasir::serve {
namespace {

std::string header(const HttpRequest& request, const std::string& name) {
  const auto found = request.headers.find(name);
  return found == request.headers.end() ? "" : found->second;
}

// Removes the port: "[::1]:8080" becomes "[::1]", "localhost:8080" becomes "localhost".
std::string_view host_of(std::string_view text) {
  if (text.starts_with('[')) return text.substr(0, text.find(']') + 1);
  return text.substr(0, text.find(':'));
}

bool is_local(std::string_view name) {
  std::string host(name);
  std::ranges::transform(host, host.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  constexpr std::array<std::string_view, 3> kNames{"localhost", "[::1]", "127.0.0.1"};
  return std::find(kNames.begin(), kNames.end(), host) != kNames.end() || host.ends_with(".localhost") ||
         (host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string::npos);
}

// "http://localhost:8080" becomes "localhost:8080"; empty for other schemes.
std::string_view address_of(std::string_view origin) {
  for (const std::string_view scheme : {"http://", "https://"})
    if (origin.starts_with(scheme)) return origin.substr(scheme.size());
  return {};
}

// A name can be made to lead to any address, a number cannot (DNS rebinding).
bool is_number(std::string_view host) {
  return host.starts_with('[') || (!host.empty() && host.find_first_not_of("0123456789.") == host.npos);
}

// Returns the text if it is safe to repeat in a header or the log, else an empty string.
std::string printable_id(const std::string& text) {
  const bool good = !text.empty() && text.size() <= 128 &&
                    std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 127 && c != '"'; });
  return good ? text : "";
}

std::string sent_key(const HttpRequest& request) {
  const std::string bearer = header(request, "authorization");
  constexpr size_t kScheme = 7;  // length of "Bearer ", in upper or lower case
  if (bearer.size() > kScheme && strncasecmp(bearer.c_str(), "Bearer ", kScheme) == 0) return bearer.substr(kScheme);
  const std::string key = header(request, "x-api-key");
  return key.empty() ? header(request, "api-key") : key;
}

}  // namespace

Service::Service(ServiceOptions options) : o_(std::move(options)), metrics_(o_.vllm_names) {
  for (const ServiceOptions::Model& model : o_.models) models_.push_back({.options = model});
}

// Answers may keep a model alive longer, but its thread must end now, since it posts to the server.
Service::~Service() {
  for (const Loaded& model : models_)
    if (model.host != nullptr) model.host->close();
}

// OpenAI's paths also match without "/v1", as in llama-server.
const std::vector<Service::Entry>& Service::entries() {
  static const std::vector<Entry> all{
      {"POST", "/v1/chat/completions", &Service::chat},
      {"POST", "/v1/completions", &Service::completions},
      {"POST", "/v1/embeddings", &Service::embeddings},
      {"POST", "/v1/messages", &Service::chat, false, Dialect::messages},
      {"POST", "/v1/messages/count_tokens", &Service::count_tokens, false, Dialect::messages},
      {"POST", "/v1/responses", &Service::chat, false, Dialect::responses},
      {"GET", "/v1/models", &Service::models},
      {"GET", "/v1/models/", &Service::model},
      {"GET", "/v1/scheduler", &Service::scheduler},
      {"GET", "/v1/cache/events", &Service::cache_events},
      {"POST", "/tokenize", &Service::tokenize},
      {"POST", "/detokenize", &Service::detokenize},
      {"POST", "/apply-template", &Service::apply_template},
      {"GET", "/props", &Service::props},
      {"GET", "/metrics", &Service::metrics},
      {"GET", "/", &Service::page, true},
      {"GET", "/health", &Service::health, true},
      {"GET", "/ready", &Service::ready, true},
  };
  return all;
}

namespace {

bool fits(std::string_view pattern, std::string_view path) {
  if (pattern.size() > 1 && pattern.ends_with('/')) return path.size() > pattern.size() && path.starts_with(pattern);
  return path == pattern;
}

bool matches(std::string_view pattern, std::string_view path) {
  constexpr std::string_view kVersion = "/v1";
  return fits(pattern, path) || (pattern.starts_with(kVersion) && fits(pattern.substr(kVersion.size()), path));
}

}  // namespace

void Service::handle(const std::shared_ptr<Exchange>& exchange) {
  const HttpRequest& request = exchange->request();
  if (request.method == "OPTIONS") return preflight(exchange);
  std::string id = printable_id(header(request, "x-request-id"));
  if (id.empty()) id = new_id("req-");
  Asked asked{exchange, nullptr, id, headers_for(request, id), now_seconds()};
  const Entry* found = nullptr;
  std::string allowed;
  for (const Entry& entry : entries())
    if (matches(entry.path, request.path)) {
      allowed = entry.method;
      const bool reads = allowed == "GET" && request.method == "HEAD";
      if (reads || allowed == request.method) found = &entry;
    }
  const bool is_open = found != nullptr && found->open;
  if (found != nullptr) asked.dialect = found->dialect;
  if (const auto error = refused(request, is_open, &asked.caller)) return answer(asked, *error);
  if (allowed.empty())
    return answer(asked, ApiError{.status = 404, .code = "unknown_url", .message = "nothing is at this path"});
  if (found == nullptr) {
    asked.headers.emplace_back("Allow", allowed);
    return answer(asked,
                  ApiError{.status = 405, .code = "method_not_allowed", .message = "the method must be " + allowed});
  }
  (this->*found->route)(asked);
}

// Foreign origins are refused on every request, since a web page can send some requests without a preflight and consume
// resources even though it cannot read the answer.
bool Service::may_ask(const HttpRequest& request) const {
  const std::string origin = header(request, "origin");
  const std::string_view address = address_of(origin);
  if (is_local(host_of(address))) return true;
  if (address == header(request, "host") && is_number(host_of(address))) return true;  // the page of this server
  return std::find(o_.cors.begin(), o_.cors.end(), origin) != o_.cors.end();
}

std::optional<ApiError> Service::refused(const HttpRequest& request, bool open, std::shared_ptr<Caller>* caller) const {
  const std::string host = header(request, "host");
  if (o_.local_only && !host.empty() && !is_local(host_of(host)))
    return ApiError{.status = 403, .code = "forbidden_host", .message = "this server answers to local names only"};
  if (!header(request, "origin").empty() && !may_ask(request))
    return ApiError{
        .status = 403, .code = "forbidden_origin", .message = "requests from pages of this origin are not allowed"};
  *caller = o_.keys.find(open && o_.keys.required() ? std::string() : sent_key(request));
  if (*caller == nullptr && !open)
    return ApiError{.status = 401, .code = "invalid_api_key", .message = "the API key is missing or not known"};
  return {};
}

std::vector<std::pair<std::string, std::string>> Service::headers_for(const HttpRequest& request,
                                                                      const std::string& id) const {
  std::vector<std::pair<std::string, std::string>> headers{{"x-request-id", id}};
  const std::string origin = header(request, "origin");
  if (!origin.empty() && may_ask(request)) {
    headers.emplace_back("Access-Control-Allow-Origin", origin);
    headers.emplace_back("Access-Control-Expose-Headers", "x-request-id, x-kvasir-cached-tokens");
    headers.emplace_back("Vary", "Origin");
  }
  return headers;
}

void Service::preflight(const std::shared_ptr<Exchange>& exchange) {
  const HttpRequest& request = exchange->request();
  HttpAnswer answer{.status = 204, .content_type = "", .headers = headers_for(request, new_id("req-"))};
  const bool allowed = std::any_of(answer.headers.begin(), answer.headers.end(),
                                   [](const auto& h) { return h.first == "Access-Control-Allow-Origin"; });
  if (allowed) {
    answer.headers.emplace_back("Access-Control-Allow-Methods", "GET, POST, OPTIONS");
    const std::string wanted = header(request, "access-control-request-headers");
    answer.headers.emplace_back("Access-Control-Allow-Headers",
                                wanted.empty() ? "authorization, content-type" : wanted);
    answer.headers.emplace_back("Access-Control-Max-Age", "600");
  }
  exchange->answer(std::move(answer));
}

void Service::answer(const Asked& asked, const ApiError& error) {
  const AnswerRecord record{.status = error.status, .error_code = error.code, .total_s = now_seconds() - asked.came};
  metrics_.over("", record);
  log(asked, "", record);
  answer(asked, error_answer(error, asked.dialect));
}

void Service::answer(const Asked& asked, HttpAnswer answer) {
  answer.headers.insert(answer.headers.end(), asked.headers.begin(), asked.headers.end());
  asked.exchange->answer(std::move(answer));
}

namespace {

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ",") + name;
  return text;
}

// Quotes a value for logfmt, so that text from a request cannot end the line.
std::string in_quotes(const std::string& text) { return to_text(Json(text)); }

}  // namespace

void Service::log(const Asked& asked, const std::string& model, const AnswerRecord& r) const {
  if (!o_.log) return;
  const HttpRequest& request = asked.exchange->request();
  std::string line = fmt::format("id={} method={} path={} status={}", asked.id, in_quotes(request.method),
                                 in_quotes(request.path), r.gone ? 499 : r.status);
  if (!r.error_code.empty()) line += " error=" + r.error_code;
  if (asked.caller != nullptr && !asked.caller->name.empty()) line += " key=" + in_quotes(asked.caller->name);
  if (!model.empty())
    line += fmt::format(" model={} prompt={} cached={} generated={} preempted={} queued_ms={:.1f} first_ms={:.1f}",
                        in_quotes(model), r.usage.prompt, r.usage.cached, r.usage.completion, r.preemptions,
                        r.queued_s * 1e3, r.first_token_s * 1e3);
  line += fmt::format(" total_ms={:.1f}", r.total_s * 1e3);
  if (!r.ignored.empty()) line += " ignored=" + in_quotes(joined(r.ignored));
  if (const std::string trace = printable_id(header(request, "traceparent")); !trace.empty())
    line += " traceparent=" + trace;
  o_.log(line);
}

}  // namespace kvasir::serve
