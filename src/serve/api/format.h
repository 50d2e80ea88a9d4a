// The JSON members of OpenAI's answers and chunks.
#pragma once

#include <string>
#include <vector>

#include <kvasir/model.h>
#include <kvasir/scheduler.h>

#include "serve/api/writer.h"

namespace kvasir::serve {

/// Returns `prefix` followed by 24 random hex digits.
std::string new_id(const std::string& prefix);
/// Returns "length", or "stop" for any other reason.
const char* finish_name(StopReason reason);

Json usage_json(const Usage& usage);
/// The timings of a request's first choice, with llama-server's names.
Json timings_json(const Finished& done, int generated);
/// `offset`: number of characters of the text before, for kText.
Json logprobs_json(Kind kind, const std::vector<TokenLogprob>& logprobs, const Tokenizer& tokenizer, size_t offset);

/// Returns the object of a whole answer, or of a chunk of one. The caller sets its choices.
Json envelope_json(Kind kind, const Envelope& envelope, bool chunk);
/// Returns an embedding as numbers, or as base64 of its 32-bit floats.
Json embedding_json(int index, const std::vector<float>& values, bool base64);
/// Returns the number of characters of a text in UTF-8.
size_t characters(std::string_view text);

}  // namespace kvasir::serve
