// Translates requests of other APIs into OpenAI's chat completions. messages_writer.cc and responses_writer.cc write
// the answers.
#pragma once

#include <string>
#include <vector>

#include "serve/json.h"

namespace kvasir::serve {

/// A request translated into chat completions.
struct Translated {
  Json body = Json::object();
  std::vector<std::string> ignored = {};  ///< parts of the request without effect
  Json echo = {};                         ///< members that the answer repeats
};

/// Translates Anthropic's Messages. `counts`: the request is for count_tokens, which needs no max_tokens. Errors, with
/// the place: an invalid request, or a block of an unsupported type.
Result<Translated> translate_messages(const Json& body, bool counts);
/// Translates OpenAI's Responses, without stored state. Errors: as above, or a field that needs stored state.
Result<Translated> translate_responses(const Json& body);

}  // namespace kvasir::serve
