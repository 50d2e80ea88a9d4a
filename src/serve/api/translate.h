// Requests of other APIs, translated into OpenAI's chat completions. Their answers are messages_writer.cc's and
// responses_writer.cc's.
#pragma once

#include <string>
#include <vector>

#include "serve/json.h"

namespace kvasir::serve {

/// A request as chat completions have it.
struct Translated {
  Json body = Json::object();
  std::vector<std::string> ignored = {};  ///< parts of the request that changed nothing
  Json echo = {};                         ///< members that the answer repeats
};

/// Anthropic's Messages. `counts`: of count_tokens, which needs no max_tokens. Errors: what is no such request, a part
/// that is no text, both with their place.
Result<Translated> translate_messages(const Json& body, bool counts);
/// OpenAI's Responses, without a state. Errors: the same; what needs a state.
Result<Translated> translate_responses(const Json& body);

}  // namespace kvasir::serve
