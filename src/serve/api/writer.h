// How an answer is written: the objects and events of one API. When they are sent is answer.h's.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <kvasir/chat.h>
#include <kvasir/model.h>
#include <kvasir/scheduler.h>

#include "serve/api/call.h"
#include "serve/api/errors.h"

namespace kvasir::serve {

/// The members that an answer and all its chunks share.
struct Envelope {
  std::string id;       ///< "chatcmpl-..."
  int64_t created = 0;  ///< seconds since 1970
  std::string model, fingerprint;
};

struct Usage {
  int prompt = 0, completion = 0, cached = 0;
  int reasoning = 0;  ///< of the completion
};

/// News of a choice that have not been written; of an answer that is not streamed, all of it.
struct News {
  std::string text = {};               ///< kText
  std::vector<AnswerPart> parts = {};  ///< kChat
  std::vector<int> ids = {};
  std::vector<TokenLogprob> logprobs = {};
  bool none() const { return text.empty() && parts.empty() && ids.empty(); }
};

struct Choice {
  int prompt = 0;
  News news = {};
  size_t offset = 0;  ///< characters of the tokens that were written
  int generated = 0, reasoning = 0;
  bool begun = false, told = false;  ///< of a stream: the role, the end
  double last_token = 0;
  std::optional<AnswerParser> parser = {};
  std::optional<Finished> done = {};
  int calls() const { return parser ? parser->calls() : 0; }
};

/// An answer as it stands.
struct AnswerFacts {
  const Call& call;
  const Envelope& envelope;
  const Model& model;
  std::span<Choice> choices;                  ///< [prompts][n]
  std::span<const std::vector<int>> prompts;  ///< their ids
  Usage usage;
  std::function<Json()> timings, own;  ///< of the end: llama-server's figures, Kvasir's own object
};

/// Used for one answer.
class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;
  /// The object of a whole answer.
  virtual Json whole(const AnswerFacts& answer) = 0;
  /// Events of the news of choice `index`, which are then taken, and of its end.
  virtual std::string news(const AnswerFacts& answer, size_t index) = 0;
  /// The last events of a stream.
  virtual std::string end(const AnswerFacts& answer) = 0;
  /// The last event of a stream that fails.
  virtual std::string error(const ApiError& error) = 0;
};

std::unique_ptr<AnswerWriter> make_writer(const Call& call);

/// "call_..." of call `index` of a choice: a function of its arguments, so that a stream and a whole answer have one.
std::string call_id(const Envelope& envelope, size_t choice, int index, size_t characters);
/// An event of a stream: its data, and its name where the API names events.
std::string event_text(const Json& json, std::string_view name = {});

}  // namespace kvasir::serve
