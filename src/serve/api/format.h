// Answers as JSON: what OpenAI's objects and chunks are made of.
#pragma once

#include <string>
#include <vector>

#include <kvasir/model.h>
#include <kvasir/scheduler.h>

#include "serve/api/writer.h"

namespace kvasir::serve {

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
/// An embedding: numbers, or with base64 the bytes of its floats.
Json embedding_json(int index, const std::vector<float>& values, bool base64);
/// How many characters a text in UTF-8 has.
size_t characters(std::string_view text);

}  // namespace kvasir::serve
