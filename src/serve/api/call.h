// A call: what the body of one HTTP request asks of a model, before and after tokenization.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <kvasir/chat.h>
#include <kvasir/scheduler.h>

#include "serve/json.h"

namespace kvasir::serve {

/// The kinds of calls. Each is a bit, since a field can belong to several kinds.
enum Kind : unsigned { kChat = 1, kText = 2, kEmbeddings = 4, kAnyKind = 7 };

/// The API of a request and its answer. Requests of other APIs are translated into OpenAI's chat completions first.
enum class Dialect { openai, messages, responses };

/// A prompt as sent by the client: a text or token ids.
using Prompt = std::variant<std::string, std::vector<int>>;

struct Call {
  Kind kind = kText;
  Dialect dialect = Dialect::openai;
  std::string model = {};            ///< as named by the client
  Json messages = {};                ///< kChat
  std::vector<Prompt> prompts = {};  ///< kText, kEmbeddings
  Request request = {};              ///< for every prompt, without its ids
  bool seeded = false;               ///< the client gave a seed
  bool nothing = false;              ///< max_tokens is 0: the prompt is only computed and cached
  bool stream = false, include_usage = false, usage_in_all = false;
  bool return_ids = false, base64 = false;
  bool add_turn = true;                            ///< kChat: the answer is a new turn
  bool goes_on = false;                            ///< kChat: the answer continues the last message
  Json template_values = {};                       ///< kChat: an object of further template variables, or null
  Json tools = {};                                 ///< kChat: an array of functions, or null
  bool calls_tools = true;                         ///< kChat: tool_choice is not "none"
  bool one_call = false;                           ///< kChat: calls after the first one are dropped
  std::vector<std::string> client_stops = {};      ///< the client's stops, without those of the chat format
  std::function<AnswerParser()> make_parser = {};  ///< kChat with a template, once the prompt is rendered
  Json echo = {};                                  ///< Dialect::responses: request members that the answer repeats
  int top_logprobs = 0;                            ///< kChat: used if `logprobs`
  bool logprobs = false;                           ///< kChat
  std::optional<int> best_of = {}, dimensions = {};
  std::vector<std::string> ignored = {};  ///< fields without effect
};

}  // namespace kvasir::serve
