// Errors in OpenAI's form: a status, a type, a code and the parameter. Clients retry 408, 409, 429 and 5xx on their
// own, so a request that can never succeed gets a 400.
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
  std::string code = {};     ///< such as "invalid_value"
  std::string message = {};  ///< a sentence for a person
  std::string param = {};
  std::optional<int> retry_after_s = {};
  Json more = {};  ///< further members, an object of numbers
};

/// Converts an error of the library or of reading a body. Names of parameters become fields of the request:
/// "SamplingParams::top_p" becomes "top_p".
ApiError api_error(const Error& error);
/// The error for a prompt of `prompt` tokens that does not fit `ctx`, in the words that clients search for.
ApiError too_long(int ctx, int prompt);

/// {"error": {message, type, param, code}}; for Dialect::messages {"type": "error", "error": {type, message}}.
Json error_json(const ApiError& error, Dialect dialect = Dialect::openai);
HttpAnswer error_answer(const ApiError& error, Dialect dialect = Dialect::openai);
/// The answer to an invalid HTTP request (HttpRefusal).
HttpAnswer refusal(int status, const std::string& what);

}  // namespace kvasir::serve
