// Errors as OpenAI's clients know them: a status, a type, a code, and the parameter. Clients repeat a request after
// 408, 409, 429 and 5xx by themselves, so one that can never succeed is a 400.
#pragma once

#include <optional>
#include <string>

#include <kvasir/result.h>

#include "serve/api/call.h"
#include "serve/http/http_server.h"
#include "serve/json.h"

namespace kvasir::serve {

struct ApiError {
  int status = 400;
  std::string code = {};     ///< "invalid_value"
  std::string message = {};  ///< a sentence for a person
  std::string param = {};
  std::optional<int> retry_after_s = {};
  Json more = {};  ///< members besides: numbers
};

/// An error of the library or of reading a body. Parameters of the API become fields of the request:
/// "SamplingParams::top_p" is "top_p".
ApiError api_error(const Error& error);
/// A prompt of `prompt` tokens and more that do not fit `ctx`, in the words that clients look for.
ApiError too_long(int ctx, int prompt);

/// {"error": {message, type, param, code}}; of Dialect::messages {"type": "error", "error": {type, message}}.
Json error_json(const ApiError& error, Dialect dialect = Dialect::openai);
HttpAnswer error_answer(const ApiError& error, Dialect dialect = Dialect::openai);
/// The answer to what never became a request (HttpRefusal).
HttpAnswer refusal(int status, const std::string& what);

}  // namespace kvasir::serve
