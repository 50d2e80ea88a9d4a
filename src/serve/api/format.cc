// Builds the JSON objects of OpenAI's API.
#include "serve/api/format.h"

#include <algorithm>
#include <cstring>
#include <random>

#include <fmt/format.h>

namespace kvasir::serve {
namespace {

Json bytes_of(const std::string& text) {
  Json bytes = Json::array();
  for (const char c : text) bytes.push_back(static_cast<unsigned char>(c));
  return bytes;
}

Json chat_logprob(int id, double logprob, const Tokenizer& tokenizer) {
  const std::string text = tokenizer.token_text(id);
  return {{"token", text}, {"logprob", logprob}, {"bytes", bytes_of(text)}};
}

Json chat_logprobs(const std::vector<TokenLogprob>& all, const Tokenizer& tokenizer) {
  Json content = Json::array();
  for (const TokenLogprob& one : all) {
    Json entry = chat_logprob(one.id, one.logprob, tokenizer);
    Json top = Json::array();
    for (const auto& [id, logprob] : one.top) top.push_back(chat_logprob(id, logprob, tokenizer));
    entry["top_logprobs"] = std::move(top);
    content.push_back(std::move(entry));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

// Two tokens may have the same text; the likelier one is reported.
Json text_logprobs(const std::vector<TokenLogprob>& all, const Tokenizer& tokenizer, size_t offset) {
  Json tokens = Json::array(), values = Json::array(), tops = Json::array(), offsets = Json::array();
  for (const TokenLogprob& one : all) {
    const std::string text = tokenizer.token_text(one.id);
    Json top = Json::object();
    for (const auto& [id, logprob] : one.top)
      if (const std::string t = tokenizer.token_text(id); !top.contains(t)) top[t] = logprob;
    tokens.push_back(text);
    values.push_back(one.logprob);
    tops.push_back(std::move(top));
    offsets.push_back(offset);
    offset += characters(text);
  }
  return {{"tokens", std::move(tokens)},
          {"token_logprobs", std::move(values)},
          {"top_logprobs", std::move(tops)},
          {"text_offset", std::move(offsets)}};
}

std::string base64_of(std::span<const unsigned char> bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k) group = group << 8 | (i + k < bytes.size() ? bytes[i + k] : 0);
    for (size_t k = 0; k < 4; ++k) text += i + k <= bytes.size() ? kDigits[group >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

}  // namespace

size_t characters(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string new_id(const std::string& prefix) {
  static thread_local std::mt19937_64 random(std::random_device{}());
  return fmt::format("{}{:016x}{:08x}", prefix, random(), static_cast<uint32_t>(random()));
}

const char* finish_name(StopReason reason) { return reason == StopReason::length ? "length" : "stop"; }

Json usage_json(const Usage& usage) {
  return {{"prompt_tokens", usage.prompt},
          {"completion_tokens", usage.completion},
          {"total_tokens", usage.prompt + usage.completion},
          {"prompt_tokens_details", {{"cached_tokens", usage.cached}}},
          {"completion_tokens_details", {{"reasoning_tokens", usage.reasoning}}}};
}

Json timings_json(const Finished& done, int generated) {
  const auto rate = [](int tokens, double seconds) { return seconds > 0 ? tokens / seconds : 0.0; };
  const double prompt_s = std::max(0.0, done.first_token_s - done.queued_s);
  const double predicted_s = std::max(0.0, done.total_s - done.first_token_s);
  return {{"queued_ms", done.queued_s * 1e3},
          {"cache_n", done.generation.cached_tokens},
          {"prompt_n", done.computed},
          {"prompt_ms", prompt_s * 1e3},
          {"prompt_per_second", rate(done.computed, prompt_s)},
          {"predicted_n", generated},
          {"predicted_ms", predicted_s * 1e3},
          {"predicted_per_second", rate(std::max(0, generated - 1), predicted_s)}};
}

Json logprobs_json(Kind kind, const std::vector<TokenLogprob>& logprobs, const Tokenizer& tokenizer, size_t offset) {
  return kind == kChat ? chat_logprobs(logprobs, tokenizer) : text_logprobs(logprobs, tokenizer, offset);
}

Json envelope_json(Kind kind, const Envelope& e, bool chunk) {
  const char* object = kind == kText ? "text_completion" : chunk ? "chat.completion.chunk" : "chat.completion";
  return {{"id", e.id},
          {"object", object},
          {"created", e.created},
          {"model", e.model},
          {"system_fingerprint", e.fingerprint}};
}

Json embedding_json(int index, const std::vector<float>& values, bool base64) {
  Json embedding;
  if (base64)
    embedding = base64_of({reinterpret_cast<const unsigned char*>(values.data()), values.size() * sizeof(float)});
  else
    embedding = values;
  return {{"object", "embedding"}, {"index", index}, {"embedding", std::move(embedding)}};
}

}  // namespace kvasir::serve
