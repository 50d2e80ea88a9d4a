// Writes answers of OpenAI's Responses, which consist of items, each with its own events.
#include <fmt/format.h>

#include "serve/api/format.h"
#include "serve/api/items.h"
#include "serve/api/writer.h"

namespace kvasir::serve {
namespace {

Json usage_of(const Usage& u) {
  return {{"input_tokens", u.prompt},
          {"input_tokens_details", {{"cached_tokens", u.cached}}},
          {"output_tokens", u.completion},
          {"output_tokens_details", {{"reasoning_tokens", u.reasoning}}},
          {"total_tokens", u.prompt + u.completion}};
}

// Derives the id of an item, such as "msg_...", from the answer's id "resp_...".
std::string item_id(const AnswerFacts& a, const AnswerItem& item, size_t index) {
  const char* prefix = item.kind == AnswerPart::content ? "msg_" : item.kind == AnswerPart::call ? "fc_" : "rs_";
  return fmt::format("{}{}{:02x}", prefix, a.envelope.id.substr(a.envelope.id.find('_') + 1), index);
}

Json text_part(const std::string& text) {
  return {{"type", "output_text"}, {"text", text}, {"annotations", Json::array()}, {"logprobs", Json::array()}};
}

Json reasoning_part(const std::string& text) { return {{"type", "reasoning_text"}, {"text", text}}; }

// Returns an item with its status. An item "in_progress" has no text yet.
Json item_json(const AnswerFacts& a, const AnswerItem& item, size_t index, const char* status) {
  const bool begins = std::string_view(status) == "in_progress";
  Json json = {{"id", item_id(a, item, index)}};
  Json content = Json::array();
  if (item.kind == AnswerPart::content) {
    if (!begins) content.push_back(text_part(item.text));
    json.update({{"type", "message"}, {"status", status}, {"role", "assistant"}, {"content", content}});
  } else if (item.kind == AnswerPart::reasoning) {
    if (!begins) content.push_back(reasoning_part(item.text));
    json.update({{"type", "reasoning"}, {"summary", Json::array()}, {"content", content}, {"status", status}});
  } else {
    json.update({{"type", "function_call"},
                 {"status", status},
                 {"call_id", call_id(a.envelope, 0, item.call, a.choices[0].parser->id_characters())},
                 {"name", item.name},
                 {"arguments", begins ? "" : item.text}});
  }
  return json;
}

bool is_cut(const AnswerFacts& a) { return a.choices[0].done->generation.stop_reason == StopReason::length; }

// The last item of a truncated answer is incomplete.
const char* status_of(const AnswerFacts& a, bool last) { return last && is_cut(a) ? "incomplete" : "completed"; }

Json response_json(const AnswerFacts& a, const char* status, const std::vector<AnswerItem>& items) {
  Json json = {{"id", a.envelope.id}, {"object", "response"}, {"created_at", a.envelope.created}, {"status", status},
               {"background", false}, {"error", nullptr},     {"incomplete_details", nullptr}};
  const bool ends = a.choices[0].done.has_value();
  if (ends && is_cut(a)) json["incomplete_details"] = {{"reason", "max_output_tokens"}};
  json["model"] = a.envelope.model;
  Json output = Json::array();
  for (size_t i = 0; i < items.size(); ++i)
    output.push_back(item_json(a, items[i], i, status_of(a, i + 1 == items.size())));
  json["output"] = std::move(output);
  json["previous_response_id"] = nullptr;
  json["store"] = false;
  json["truncation"] = "disabled";
  if (a.call.echo.is_object()) json.update(a.call.echo);
  json["usage"] = ends ? usage_of(a.usage) : Json();
  if (ends) json["kvasir"] = a.own();
  return json;
}

class ResponsesWriter : public AnswerWriter {
 public:
  Json whole(const AnswerFacts& a) override {
    return response_json(a, status_of(a, true), items_of(a.choices[0].news.parts));
  }

  std::string news(const AnswerFacts& a, size_t index) override {
    Choice& c = a.choices[index];
    std::string out;
    if (!std::exchange(c.begun, true)) {
      out += event("response.created", {{"response", response_json(a, "in_progress", {})}});
      out += event("response.in_progress", {{"response", response_json(a, "in_progress", {})}});
      response_ = response_json(a, "failed", {});
    }
    for (const AnswerPart& part : c.news.parts) add(a, part, &out);
    c.news = {};
    return out;
  }

  std::string end(const AnswerFacts& a) override {
    const char* status = status_of(a, true);
    std::string out = end_item(a, status);
    return out + event(fmt::format("response.{}", status), {{"response", response_json(a, status, items_)}});
  }

  std::string error(const ApiError& error) override {
    response_["error"] = {{"code", error.code}, {"message", error.message}};
    return event("response.failed", {{"response", response_}});
  }

 private:
  std::string event(const std::string& name, Json members) {
    Json json = {{"type", name}, {"sequence_number", sequence_++}};
    json.update(members);
    return event_text(json, name);
  }

  Json place(const AnswerFacts& a, bool in_part) const {
    const size_t index = items_.size() - 1;
    Json json = {{"item_id", item_id(a, items_.back(), index)}, {"output_index", index}};
    if (in_part) json["content_index"] = 0;
    return json;
  }

  static Json with(Json json, const Json& more) {
    json.update(more);
    return json;
  }

  void add(const AnswerFacts& a, const AnswerPart& part, std::string* out) {
    const bool is_new = begins_item(items_, part);
    if (is_new) *out += end_item(a, "completed");
    add_part(&items_, part);
    if (is_new) *out += begin_item(a);
    if (part.kind == AnswerPart::call) return;
    Json delta = place(a, part.kind != AnswerPart::arguments);
    delta["delta"] = part.text;
    if (part.kind == AnswerPart::content) delta["logprobs"] = Json::array();
    *out += event(std::string("response.") + kind_name(items_.back()) + ".delta", std::move(delta));
  }

  static const char* kind_name(const AnswerItem& item) {
    return item.kind == AnswerPart::content     ? "output_text"
           : item.kind == AnswerPart::reasoning ? "reasoning_text"
                                                : "function_call_arguments";
  }

  static Json part_json(const AnswerItem& item, const std::string& text) {
    return item.kind == AnswerPart::content ? text_part(text) : reasoning_part(text);
  }

  std::string begin_item(const AnswerFacts& a) {
    const AnswerItem& item = items_.back();
    const size_t index = items_.size() - 1;
    open_ = true;
    std::string out = event("response.output_item.added",
                            {{"output_index", index}, {"item", item_json(a, item, index, "in_progress")}});
    if (item.kind != AnswerPart::call)
      out += event("response.content_part.added", with(place(a, true), {{"part", part_json(item, "")}}));
    return out;
  }

  std::string end_item(const AnswerFacts& a, const char* status) {
    if (!std::exchange(open_, false)) return {};
    const AnswerItem& item = items_.back();
    const bool is_call = item.kind == AnswerPart::call;
    Json done = with(place(a, !is_call), {{is_call ? "arguments" : "text", item.text}});
    if (is_call) done["name"] = item.name;
    if (item.kind == AnswerPart::content) done["logprobs"] = Json::array();
    std::string out = event(std::string("response.") + kind_name(item) + ".done", std::move(done));
    if (!is_call)
      out += event("response.content_part.done", with(place(a, true), {{"part", part_json(item, item.text)}}));
    const size_t index = items_.size() - 1;
    return out +
           event("response.output_item.done", {{"output_index", index}, {"item", item_json(a, item, index, status)}});
  }

  std::vector<AnswerItem> items_;
  Json response_ = {};
  int sequence_ = 0;
  bool open_ = false;
};

}  // namespace

std::unique_ptr<AnswerWriter> responses_writer() { return std::make_unique<ResponsesWriter>(); }

}  // namespace kvasir::serve
