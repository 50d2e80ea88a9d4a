// Maps errors of the library to statuses and codes.
#include "serve/api/errors.h"

#include <fmt/format.h>

namespace kvasir::serve {
namespace {

// Converts a parameter such as "GenerateOptions::max_tokens" to its field "max_tokens"; fields of another name are
// listed.
std::string field_of(const std::string& where) {
  constexpr std::pair<std::string_view, std::string_view> kOthers[] = {
      {"Generator::prompt", "prompt"},          {"Generator::resume", "resume_token_ids"},
      {"Request::resume", "resume_token_ids"},  {"Request::choices", "n"},
      {"Request::timeout_s", "timeout_ms"},     {"GenerateOptions::stop_ids", "stop_token_ids"},
      {"SchedulerOptions::max_queue", "queue"},
  };
  for (const auto& [parameter, field] : kOthers)
    if (where.starts_with(parameter)) return std::string(field);
  const size_t colons = where.rfind("::");
  return colons == std::string::npos ? where : where.substr(colons + 2);
}

std::string sentence(const Error& error, const std::string& field) {
  std::string text = field.empty() ? error.what : field + ": " + error.what;
  if (!error.hint.empty()) {
    const size_t colons = error.hint.rfind("::");
    text += colons == std::string::npos ? " (try: " + error.hint + ")" : "";
  }
  return text;
}

ApiError of_kind(Error::Kind kind) {
  switch (kind) {
    case Error::bad_argument:
      return {.status = 400, .code = "invalid_value"};
    case Error::too_long:
      return {.status = 400, .code = "context_length_exceeded"};
    case Error::unsupported:
      return {.status = 400, .code = "unsupported_parameter"};
    case Error::damaged:
      return {.status = 400, .code = "invalid_json"};
    case Error::not_found:
      return {.status = 404, .code = "not_found"};
    case Error::busy:
      return {.status = 429, .code = "queue_full", .retry_after_s = 1};
    case Error::no_room:
      return {.status = 503, .code = "no_room", .retry_after_s = 1};
    case Error::closing:
      return {.status = 503, .code = "draining", .retry_after_s = 5};
    case Error::timed_out:
      return {.status = 504, .code = "deadline_exceeded"};
    case Error::not_finite:
      return {.status = 500, .code = "non_finite_logits"};
    case Error::io:
    case Error::internal:
      break;
  }
  return {.status = 500, .code = "internal"};
}

const char* type_of(const ApiError& error) {
  if (error.status == 401) return "authentication_error";
  if (error.status == 404) return "not_found_error";
  if (error.status == 429) return "rate_limit_error";
  return error.status >= 500 ? "server_error" : "invalid_request_error";
}

}  // namespace

ApiError api_error(const Error& error) {
  const std::string field = field_of(error.where);
  ApiError e = of_kind(error.kind);
  e.message = sentence(error, field);
  if (e.status == 400) e.param = field;
  return e;
}

ApiError too_long(int ctx, int prompt) {
  return {
      .status = 400,
      .code = "context_length_exceeded",
      .message = fmt::format("This model's maximum context length is {} tokens. However, your prompt has {} tokens. "
                             "Please reduce the length of the prompt. It exceeds the available context size.",
                             ctx, prompt),
      .param = "prompt",
      .more = {{"n_prompt_tokens", prompt}, {"n_ctx", ctx}}};
}

namespace {

// Anthropic's names of error types.
const char* messages_type_of(const ApiError& error) {
  switch (error.status) {
    case 400:
      return "invalid_request_error";
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    case 504:
      return "timeout_error";
    default:
      return error.status >= 500 ? "api_error" : "invalid_request_error";
  }
}

}  // namespace

Json error_json(const ApiError& error, Dialect dialect) {
  if (dialect == Dialect::messages)
    return {{"type", "error"}, {"error", {{"type", messages_type_of(error)}, {"message", error.message}}}};
  Json inner = {{"message", error.message},
                {"type", type_of(error)},
                {"param", error.param.empty() ? Json() : Json(error.param)},
                {"code", error.code}};
  if (error.more.is_object()) inner.update(error.more);
  return {{"error", inner}};
}

HttpAnswer error_answer(const ApiError& error, Dialect dialect) {
  HttpAnswer answer{.status = error.status, .body = to_text(error_json(error, dialect))};
  if (error.retry_after_s) answer.headers.emplace_back("Retry-After", std::to_string(*error.retry_after_s));
  return answer;
}

HttpAnswer refusal(int status, const std::string& what) {
  const char* code = status == 408   ? "timeout"
                     : status == 413 ? "body_too_large"
                     : status == 431 ? "headers_too_large"
                     : status == 501 ? "not_implemented"
                     : status >= 500 ? "internal"
                                     : "bad_request";
  return error_answer({.status = status, .code = code, .message = what});
}

}  // namespace kvasir::serve
