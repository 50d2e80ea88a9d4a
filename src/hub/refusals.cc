// Reads the hub's headers X-Error-Code and X-Error-Message, its JSON {"error": ...} and the HTTP status.
#include "hub/refusals.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/quote.h"

namespace kvasir::hub {
namespace {

std::string told(const Answer& answer, const std::string& body) {
  if (const std::string message = answer.header("x-error-message"); !message.empty()) return message;
  const auto json = nlohmann::ordered_json::parse(body, nullptr, false);
  if (json.is_object() && json.contains("error") && json["error"].is_string()) return json["error"].get<std::string>();
  return {};
}

std::string with_message(std::string what, const std::string& message) {
  return message.empty() ? what : what + ", " + in_quotes(message);
}

Error denied(const Answer& answer, const std::string& message, bool has_token, bool sent_token) {
  const bool gated = answer.header("x-error-code") == "GatedRepo" || message.find("gated") != message.npos;
  std::string hint = "the name, or a token that may read it in HF_TOKEN";
  if (gated) hint = "accept its terms on its page, and put a token that may read it into HF_TOKEN";
  if (has_token && !sent_token) hint = "an endpoint with https: the token is not sent over plain http";
  return {Error::bad_argument,
          with_message(gated ? fmt::format("the model is gated ({})", answer.status)
                             : fmt::format("the hub refuses it ({})", answer.status),
                       message),
          shown_url(answer.url), hint};
}

}  // namespace

Failure refusal(const Answer& answer, const std::string& body, long seconds, bool has_token, bool sent_token) {
  const std::string message = told(answer, body);
  const long status = answer.status;
  if (status == 401 || status == 403) return {denied(answer, message, has_token, sent_token), false, {}};
  if (status == 404 || status == 410)
    return {
        {Error::not_found, with_message(fmt::format("the hub has no such repository or file ({})", status), message),
         shown_url(answer.url), "another name"},
        false,
        {}};
  const bool again =
      status == 408 || status == 425 || status == 429 || status == 500 || (status >= 502 && status <= 504);
  std::string what = status == 429 ? "too many requests (429)" : fmt::format("the server answers {}", status);
  if (seconds > 0) what += fmt::format("; try again in {} s", seconds);
  Failure out{{status == 429 ? Error::busy : Error::io, with_message(what, message), shown_url(answer.url),
               again ? "later" : ""},
              again,
              {}};
  if (seconds > 0) out.after_seconds = static_cast<double>(seconds);
  return out;
}

bool may_pass(CURLcode code) {
  switch (static_cast<int>(code)) {
    case CURLE_PARTIAL_FILE:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_WEIRD_SERVER_REPLY:
      return true;
    default:
      return false;
  }
}

}  // namespace kvasir::hub
