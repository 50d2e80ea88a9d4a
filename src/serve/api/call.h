// A call: what the body of one HTTP request asks of a model, before and after its texts have become token ids.
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

/// The kinds of calls. Each is a bit, so that a field can belong to several.
enum Kind : unsigned { kChat = 1, kText = 2, kEmbeddings = 4, kAnyKind = 7 };

/// Whose requests and answers they are. Another API's request is translated into OpenAI's chat before it is read.
enum class Dialect { openai, messages, responses };

/// A prompt as it is sent: a text, or its token ids.
using Prompt = std::variant<std::string, std::vector<int>>;

struct Call {
  Kind kind = kText;
  Dialect dialect = Dialect::openai;
  std::string model = {};  ///< as asked
  Json messages = {};      ///< kChat; their text is Prompts' first once they are rendered
  std::vector<Prompt> prompts = {};
  Request request = {};  ///< of every prompt, but for its ids
  bool seeded = false;   ///< the seed was given
  bool nothing = false;  ///< max_tokens is 0: the prompt is computed and kept
  bool stream = false, include_usage = false, usage_in_all = false;
  bool return_ids = false, base64 = false;
  bool add_turn = true;       ///< kChat: the answer is a turn of its own
  bool goes_on = false;       ///< kChat: the last message is not complete
  Json template_values = {};  ///< kChat: an object of what the template is told beside the talk, or null
  Json tools = {};            ///< kChat: an array of functions, or null
  bool calls_tools = true;    ///< kChat: tool_choice is not "none"
  bool one_call = false;      ///< kChat: calls after the first one are dropped
  std::vector<std::string> client_stops = {};      ///< Request's stops without those of a format
  std::function<AnswerParser()> make_parser = {};  ///< kChat with a template, once the prompt is rendered
  Json echo = {};                                  ///< Dialect::responses: members of the request in the answer
  int top_logprobs = 0;                            ///< kChat, before it is known whether any are wanted
  bool logprobs = false;                           ///< kChat
  std::optional<int> best_of = {}, dimensions = {};
  std::vector<std::string> ignored = {};  ///< fields that changed nothing
};

}  // namespace kvasir::serve
