// Answers as JSON: OpenAI's objects and chunks, with Kvasir's own object beside them. When they are sent is answer.h's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <kvasir/model.h>
#include <kvasir/scheduler.h>

#include "serve/api/call.h"

namespace kvasir::serve {

/// The members that an answer and all its chunks share.
struct Envelope {
  std::string id;       ///< "chatcmpl-..."
  int64_t created = 0;  ///< seconds since 1970
  std::string model, fingerprint;
};

/// News of a choice that have not been sent; of an answer that is not streamed, all of it.
struct News {
  std::string text = {};
  std::vector<int> ids = {};
  std::vector<TokenLogprob> logprobs = {};
};

struct Usage {
  int prompt = 0, completion = 0, cached = 0;
};

/// 24 hex digits after `prefix`, drawn.
std::string new_id(const std::string& prefix);
/// "stop", "length"; of a cancelled choice too: it is told to nobody.
const char* finish_name(StopReason reason);

Json usage_json(const Usage& usage);
/// llama-server's names, of a request's first choice.
Json timings_json(const Finished& done, int generated);
/// `offset`: characters of the text before, for kText.
Json logprobs_json(Kind kind, const std::vector<TokenLogprob>& logprobs, const Tokenizer& tokenizer, size_t offset);

/// The object of a whole answer, or with `chunk` of a piece of one; its choices are to be set.
Json envelope_json(Kind kind, const Envelope& envelope, bool chunk);
/// One of the choices of a whole answer.
Json choice_json(Kind kind, int index, const News& news, Json logprobs, StopReason finish);
/// A chunk's choice. `begins`: the role; else the news, or with `finish` the end.
Json chunk_choice(Kind kind, int index, bool begins, const News& news, Json logprobs, std::optional<StopReason> finish);

/// An embedding: numbers, or with base64 the bytes of its floats.
Json embedding_json(int index, const std::vector<float>& values, bool base64);
/// How many characters a text in UTF-8 has.
size_t characters(std::string_view text);

}  // namespace kvasir::serve
