// Writes answers of OpenAI's chat completions and completions.
#include <utility>

#include "serve/api/format.h"
#include "serve/api/items.h"
#include "serve/api/writer.h"

namespace kvasir::serve {
namespace {

Json logprobs_of(const AnswerFacts& a, const Choice& choice) {
  if (a.call.request.options.logprobs < 0 || a.model.tokenizer() == nullptr) return {};
  return logprobs_json(a.call.kind, choice.news.logprobs, *a.model.tokenizer(), choice.offset);
}

// Number of characters of the tokens in the news. Offsets count tokens' own text, however their text was sent.
size_t token_characters(const AnswerFacts& a, const Choice& choice) {
  size_t count = 0;
  for (const TokenLogprob& one : choice.news.logprobs)
    if (a.model.tokenizer() != nullptr) count += characters(a.model.tokenizer()->token_text(one.id));
  return count;
}

const char* finish_of(const Choice& choice) {
  const StopReason reason = choice.done->generation.stop_reason;
  return choice.calls() > 0 && reason != StopReason::length ? "tool_calls" : finish_name(reason);
}

class ChatWriter : public AnswerWriter {
 public:
  Json whole(const AnswerFacts& a) override {
    Json answer = envelope_json(a.call.kind, a.envelope, false);
    Json list = Json::array();
    for (size_t i = 0; i < a.choices.size(); ++i) list.push_back(whole_choice(a, i));
    answer["choices"] = std::move(list);
    answer["usage"] = usage_json(a.usage);
    answer["timings"] = a.timings();
    answer["kvasir"] = a.own();
    return answer;
  }

  std::string news(const AnswerFacts& a, size_t index) override {
    Choice& c = a.choices[index];
    const bool is_chat = a.call.kind == kChat;
    std::string out;
    if (!std::exchange(c.begun, true) && (is_chat || a.call.return_ids)) {
      Json first = is_chat ? chunk_choice(index, {{"role", "assistant"}, {"content", ""}}) : chunk_choice(index, "");
      if (a.call.return_ids) first["prompt_token_ids"] = a.prompts[static_cast<size_t>(c.prompt)];
      out += chunk(a, std::move(first), false);
    }
    if (!c.news.none()) add_news(a, index, &out);
    if (!c.done || std::exchange(c.told, true)) return out;
    Json end = is_chat ? chunk_choice(index, Json::object()) : chunk_choice(index, "");
    end["finish_reason"] = finish_of(c);
    const bool last = std::all_of(a.choices.begin(), a.choices.end(), [](const Choice& x) { return x.told; });
    return out + chunk(a, std::move(end), last);
  }

  std::string end(const AnswerFacts& a) override {
    std::string out;
    if (a.call.include_usage) {
      Json json = envelope_json(a.call.kind, a.envelope, true);
      json["choices"] = Json::array();
      json["usage"] = usage_json(a.usage);
      out = event_text(json);
    }
    return out + "data: [DONE]\n\n";
  }

  std::string error(const ApiError& error) override { return event_text(error_json(error, Dialect::openai)); }

 private:
  static Json whole_choice(const AnswerFacts& a, size_t index) {
    const Choice& c = a.choices[index];
    Json one = {{"index", index}};
    if (a.call.kind == kChat)
      one["message"] = message_json(a, index);
    else
      one["text"] = c.news.text;
    one["logprobs"] = logprobs_of(a, c);
    one["finish_reason"] = finish_of(c);
    if (a.call.return_ids) one["token_ids"] = c.news.ids;
    if (a.call.return_ids) one["prompt_token_ids"] = a.prompts[static_cast<size_t>(c.prompt)];
    return one;
  }

  static Json message_json(const AnswerFacts& a, size_t index) {
    std::string content, reasoning;
    Json calls = Json::array();
    for (const AnswerItem& item : items_of(a.choices[index].news.parts)) {
      if (item.kind == AnswerPart::content) content += item.text;
      if (item.kind == AnswerPart::reasoning) reasoning += item.text;
      if (item.kind != AnswerPart::call) continue;
      calls.push_back({{"id", id_of(a, index, item.call)},
                       {"type", "function"},
                       {"function", {{"name", item.name}, {"arguments", item.text}}}});
    }
    Json message = {{"role", "assistant"}, {"content", nullptr}, {"refusal", nullptr}};
    if (!content.empty() || calls.empty()) message["content"] = content;
    if (!reasoning.empty()) message["reasoning_content"] = reasoning;
    if (!calls.empty()) message["tool_calls"] = std::move(calls);
    return message;
  }

  static std::string id_of(const AnswerFacts& a, size_t choice, int call) {
    return call_id(a.envelope, choice, call, a.choices[choice].parser->id_characters());
  }

  static Json delta_of(const AnswerFacts& a, size_t choice, const AnswerPart& part) {
    switch (part.kind) {
      case AnswerPart::content:
        return {{"content", part.text}};
      case AnswerPart::reasoning:
        return {{"reasoning_content", part.text}};
      case AnswerPart::call:
        return {{"tool_calls", Json::array({{{"index", part.index},
                                             {"id", id_of(a, choice, part.index)},
                                             {"type", "function"},
                                             {"function", {{"name", part.text}, {"arguments", ""}}}}})}};
      case AnswerPart::arguments:
        break;
    }
    return {{"tool_calls", Json::array({{{"index", part.index}, {"function", {{"arguments", part.text}}}}})}};
  }

  static Json chunk_choice(size_t index, Json news) {
    const bool is_chat = news.is_object();
    return {{"index", index}, {is_chat ? "delta" : "text", std::move(news)}, {"logprobs", {}}, {"finish_reason", {}}};
  }

  // Writes a chunk for each part. The first one has the token ids and log probabilities.
  static void add_news(const AnswerFacts& a, size_t index, std::string* out) {
    Choice& c = a.choices[index];
    std::vector<Json> all;
    for (const AnswerPart& part : c.news.parts) all.push_back(chunk_choice(index, delta_of(a, index, part)));
    if (a.call.kind != kChat) all.push_back(chunk_choice(index, c.news.text));
    // If a parser holds all text back, a chunk is sent only if it has token ids or log probabilities.
    const bool tells_tokens = a.call.return_ids || a.call.request.options.logprobs >= 0;
    if (all.empty() && (tells_tokens || !c.parser)) all.push_back(chunk_choice(index, {{"content", ""}}));
    if (!all.empty()) {
      all[0]["logprobs"] = logprobs_of(a, c);
      if (a.call.return_ids) all[0]["token_ids"] = c.news.ids;
    }
    for (Json& one : all) *out += chunk(a, std::move(one), false);
    c.offset += token_characters(a, c);
    c.news = {};
  }

  static std::string chunk(const AnswerFacts& a, Json choice, bool last_of_choices) {
    Json json = envelope_json(a.call.kind, a.envelope, true);
    json["choices"] = Json::array({std::move(choice)});
    if (a.call.usage_in_all)
      json["usage"] = usage_json(a.usage);
    else if (a.call.include_usage)
      json["usage"] = nullptr;
    if (last_of_choices) {
      json["timings"] = a.timings();
      json["kvasir"] = a.own();
    }
    return event_text(json);
  }
};

}  // namespace

std::unique_ptr<AnswerWriter> chat_writer() { return std::make_unique<ChatWriter>(); }

}  // namespace kvasir::serve
