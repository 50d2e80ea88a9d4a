// Writes answers of Anthropic's Messages, which consist of consecutive blocks.
#include "serve/api/format.h"
#include "serve/api/items.h"
#include "serve/api/writer.h"

namespace kvasir::serve {
namespace {

// The three input counts sum to the prompt. Cache writes have no price here, so none are counted.
Json usage_of(const AnswerFacts& a) {
  return {{"input_tokens", a.usage.prompt - a.usage.cached},
          {"cache_creation_input_tokens", 0},
          {"cache_read_input_tokens", a.usage.cached},
          {"output_tokens", a.usage.completion}};
}

// Returns the text that ended the answer, if it is one of the client's stops.
Json stop_sequence(const AnswerFacts& a, const Choice& choice) {
  const std::string& text = choice.done->generation.stop_text;
  const auto& stops = a.call.client_stops;
  return std::find(stops.begin(), stops.end(), text) != stops.end() ? Json(text) : Json();
}

const char* stop_reason(const Choice& choice, bool by_sequence) {
  if (choice.done->generation.stop_reason == StopReason::length) return "max_tokens";
  if (choice.calls() > 0) return "tool_use";
  return by_sequence ? "stop_sequence" : "end_turn";
}

Json message_json(const AnswerFacts& a) {
  return {{"id", a.envelope.id},      {"type", "message"},      {"role", "assistant"},      {"model", a.envelope.model},
          {"content", Json::array()}, {"stop_reason", nullptr}, {"stop_sequence", nullptr}, {"usage", usage_of(a)}};
}

Json block_json(const AnswerFacts& a, const AnswerItem& item, bool whole) {
  const std::string text = whole ? item.text : "";
  if (item.kind == AnswerPart::content) return {{"type", "text"}, {"text", text}};
  if (item.kind == AnswerPart::reasoning) return {{"type", "thinking"}, {"thinking", text}, {"signature", ""}};
  const std::string id = call_id(a.envelope, 0, item.call, a.choices[0].parser->id_characters());
  // Arguments that are not a JSON object are kept as text.
  Json input = Json::parse(text.empty() ? "{}" : text, nullptr, false);
  if (!input.is_object()) input = {{"arguments", text}};
  return {{"type", "tool_use"}, {"id", id}, {"name", item.name}, {"input", std::move(input)}};
}

class MessagesWriter : public AnswerWriter {
 public:
  Json whole(const AnswerFacts& a) override {
    Json message = message_json(a);
    for (const AnswerItem& item : items_of(a.choices[0].news.parts))
      message["content"].push_back(block_json(a, item, true));
    const Json stop = stop_sequence(a, a.choices[0]);
    message["stop_reason"] = stop_reason(a.choices[0], !stop.is_null());
    message["stop_sequence"] = stop;
    message["kvasir"] = a.own();
    return message;
  }

  std::string news(const AnswerFacts& a, size_t index) override {
    Choice& c = a.choices[index];
    std::string out;
    if (!std::exchange(c.begun, true))
      out += event("message_start", {{"type", "message_start"}, {"message", message_json(a)}});
    for (const AnswerPart& part : c.news.parts) add(a, part, &out);
    c.news = {};
    return out;
  }

  std::string end(const AnswerFacts& a) override {
    const Json stop = stop_sequence(a, a.choices[0]);
    std::string out = end_block();
    out += event("message_delta",
                 {{"type", "message_delta"},
                  {"delta", {{"stop_reason", stop_reason(a.choices[0], !stop.is_null())}, {"stop_sequence", stop}}},
                  {"usage", usage_of(a)},
                  {"kvasir", a.own()}});
    return out + event("message_stop", {{"type", "message_stop"}});
  }

  std::string error(const ApiError& error) override { return event("error", error_json(error, Dialect::messages)); }

 private:
  static std::string event(const char* name, const Json& json) { return event_text(json, name); }

  void add(const AnswerFacts& a, const AnswerPart& part, std::string* out) {
    const bool is_new = begins_item(items_, part);
    if (is_new) *out += end_block();
    add_part(&items_, part);
    if (is_new) {
      open_ = true;
      *out += event("content_block_start", {{"type", "content_block_start"},
                                            {"index", blocks_},
                                            {"content_block", block_json(a, items_.back(), false)}});
    }
    items_.back().text.clear();  // already sent
    if (part.kind == AnswerPart::call) return;
    Json delta = {{"type", "text_delta"}, {"text", part.text}};
    if (part.kind == AnswerPart::reasoning) delta = {{"type", "thinking_delta"}, {"thinking", part.text}};
    if (part.kind == AnswerPart::arguments) delta = {{"type", "input_json_delta"}, {"partial_json", part.text}};
    *out += event("content_block_delta",
                  {{"type", "content_block_delta"}, {"index", blocks_}, {"delta", std::move(delta)}});
  }

  std::string end_block() {
    if (!std::exchange(open_, false)) return {};
    return event("content_block_stop", {{"type", "content_block_stop"}, {"index", blocks_++}});
  }

  std::vector<AnswerItem> items_;
  int blocks_ = 0;
  bool open_ = false;
};

}  // namespace

std::unique_ptr<AnswerWriter> messages_writer() { return std::make_unique<MessagesWriter>(); }

}  // namespace kvasir::serve
