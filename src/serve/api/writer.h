// Formats an answer as the objects and events of one API. answer.h decides when they are sent.
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

/// Members that an answer and all its chunks share.
struct Envelope {
  std::string id;       ///< such as "chatcmpl-..."
  int64_t created = 0;  ///< seconds since 1970
  std::string model, fingerprint;
};

struct Usage {
  int prompt = 0, completion = 0, cached = 0;
  int reasoning = 0;  ///< included in completion
};

/// The output of a choice that has not been written yet. Without streaming, all of its output.
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
  size_t offset = 0;                 ///< number of characters of the tokens already written
  int generated = 0, reasoning = 0;  ///< tokens
  bool begun = false, told = false;  ///< streaming: the first and the last chunk have been written
  double last_token = 0;
  std::optional<AnswerParser> parser = {};
  std::optional<Finished> done = {};
  int calls() const { return parser ? parser->calls() : 0; }
};

/// The current state of an answer.
struct AnswerFacts {
  const Call& call;
  const Envelope& envelope;
  const Model& model;
  std::span<Choice> choices;                  ///< [prompts][n]
  std::span<const std::vector<int>> prompts;  ///< token ids
  Usage usage;
  std::function<Json()> timings, own;  ///< for the end: llama-server's timings, and the member "kvasir"
};

/// Writes one answer.
class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;
  /// Returns the object of a whole answer.
  virtual Json whole(const AnswerFacts& answer) = 0;
  /// Returns the events for the news of choice `index`, and for its end. Clears the news.
  virtual std::string news(const AnswerFacts& answer, size_t index) = 0;
  /// Returns the last events of a stream.
  virtual std::string end(const AnswerFacts& answer) = 0;
  /// Returns the last event of a stream that fails.
  virtual std::string error(const ApiError& error) = 0;
};

std::unique_ptr<AnswerWriter> make_writer(const Call& call);

/// Returns the id "call_..." of call `index` of a choice, or `characters` hex digits if that is not 0. It depends on
/// the arguments only, so a stream and a whole answer have the same ids.
std::string call_id(const Envelope& envelope, size_t choice, int index, size_t characters);
/// Formats an event of a stream, with its name if the API names events.
std::string event_text(const Json& json, std::string_view name = {});

}  // namespace kvasir::serve
