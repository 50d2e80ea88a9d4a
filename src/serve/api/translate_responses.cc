// Translates requests of OpenAI's Responses; nothing is stored. Source:
// platform.openai.com/docs/api-reference/responses.
#include <array>

#include <fmt/format.h>

#include "serve/api/field_values.h"
#include "serve/api/translate.h"

namespace kvasir::serve {
namespace {

std::string word(const Json& object, const char* name) {
  const Json value = object.is_object() ? object.value(name, Json()) : Json();
  return value.is_string() ? value.get<std::string>() : std::string();
}

// Reads a string, or parts that are texts.
Result<std::string> text_of(const Json& value, const std::string& where) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return fail(Error::bad_argument, shown(value) + " is no text", where, "a string or parts");
  std::string text;
  for (size_t i = 0; i < value.size(); ++i) {
    const std::string type = word(value[i], "type"), here = fmt::format("{}[{}]", where, i);
    constexpr std::array<std::string_view, 5> kTexts{"input_text", "output_text", "text", "reasoning_text",
                                                     "summary_text"};
    if (std::find(kTexts.begin(), kTexts.end(), type) == kTexts.end())
      return fail(Error::unsupported, fmt::format("parts of type \"{}\" are not supported", type.substr(0, 40)), here,
                  "input_text");
    KVASIR_TRY(const std::string more, as_string(value[i].value("text", Json())));
    text += more;
  }
  return text;
}

/// Converts items to messages. Consecutive items of one answer become one message.
class Items {
 public:
  explicit Items(Json* messages) : messages_(messages) {}

  Result<void> add(const Json& item, const std::string& where) {
    if (!item.is_object()) return fail(Error::bad_argument, shown(item) + " is no item", where);
    const std::string type = item.contains("type") ? word(item, "type") : "message";
    if (type == "message") return add_message(item, where);
    if (type == "function_call") {
      Json& message = answer(true);
      message["tool_calls"].push_back(
          {{"id", item.value("call_id", Json())},
           {"type", "function"},
           {"function", {{"name", word(item, "name")}, {"arguments", item.value("arguments", Json("{}"))}}}});
      return {};
    }
    if (type == "function_call_output") {
      KVASIR_TRY(const std::string text, text_of(item.value("output", Json("")), where + ".output"));
      messages_->push_back({{"role", "tool"}, {"tool_call_id", item.value("call_id", Json())}, {"content", text}});
      is_answer_ = false;
      return {};
    }
    if (type == "reasoning") {
      KVASIR_TRY(const std::string text, text_of(item.value("content", Json::array()), where + ".content"));
      is_answer_ = false;
      if (!text.empty()) answer(false)["reasoning_content"] = text;
      return {};
    }
    return fail(Error::unsupported, fmt::format("items of type \"{}\" are not supported", type.substr(0, 40)), where,
                "message, function_call, function_call_output, reasoning");
  }

 private:
  Result<void> add_message(const Json& item, const std::string& where) {
    const std::string role = word(item, "role");
    if (role.empty()) return fail(Error::bad_argument, "a message without a role", where + ".role", "user");
    KVASIR_TRY(const std::string text, text_of(item.value("content", Json()), where + ".content"));
    if (role != "assistant") {
      messages_->push_back({{"role", role}, {"content", text}});
      is_answer_ = false;
      return {};
    }
    if (is_answer_ && (messages_->back()["content"] != "" || messages_->back().contains("tool_calls")))
      is_answer_ = false;
    answer(false)["content"] = text;
    return {};
  }

  // Returns the assistant's message that the last item belongs to, or a new one.
  Json& answer(bool calls) {
    if (!is_answer_) messages_->push_back({{"role", "assistant"}, {"content", ""}});
    is_answer_ = true;
    Json& message = messages_->back();
    if (calls && !message.contains("tool_calls")) message["tool_calls"] = Json::array();
    return message;
  }

  Json* messages_;
  bool is_answer_ = false;
};

Result<void> add_input(const Json& body, Translated* out) {
  Json& messages = out->body["messages"];
  messages = Json::array();
  if (const Json text = body.value("instructions", Json()); !text.is_null()) {
    KVASIR_TRY(const std::string instructions, text_of(text, "instructions"));
    messages.push_back({{"role", "system"}, {"content", instructions}});
  }
  const Json input = body.value("input", Json());
  if (input.is_string()) {
    messages.push_back({{"role", "user"}, {"content", input}});
    return {};
  }
  if (!input.is_array() || input.empty())
    return fail(Error::bad_argument, shown(input) + " is no input", "input", "a string, or an array of items");
  Items items(&messages);
  for (size_t i = 0; i < input.size(); ++i) KVASIR_CHECK(items.add(input[i], fmt::format("input[{}]", i)));
  return {};
}

Result<void> add_tools(const Json& body, Translated* out) {
  const Json tools = body.value("tools", Json());
  if (!tools.is_null() && !tools.is_array()) return fail(Error::bad_argument, shown(tools) + " is no list", "tools");
  for (size_t i = 0; i < tools.size(); ++i) {
    if (word(tools[i], "type") != "function") {
      out->ignored.push_back(fmt::format("tools[{}]", i));
      continue;
    }
    Json function = Json::object();
    for (const char* name : {"name", "description", "parameters", "strict"})
      if (tools[i].contains(name) && !tools[i][name].is_null()) function[name] = tools[i][name];
    out->body["tools"].push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  if (const Json choice = body.value("tool_choice", Json()); !choice.is_null()) out->body["tool_choice"] = choice;
  return {};
}

// Refuses fields that need stored answers or work without a connected client.
Result<void> check_state(const Json& body) {
  for (const char* name : {"previous_response_id", "conversation", "prompt"})
    if (const Json value = body.value(name, Json()); !value.is_null() && value != "")
      return fail(Error::unsupported, "this server stores no answers", name, "the whole conversation as input");
  if (body.value("background", Json()) == true)
    return fail(Error::unsupported, "an answer ends with its connection", "background", "false");
  return {};
}

void add_options(const Json& body, Translated* out) {
  if (body.contains("max_output_tokens")) out->body["max_tokens"] = body["max_output_tokens"];
  const Json reasoning = body.value("reasoning", Json());
  if (!word(reasoning, "effort").empty()) out->body["reasoning_effort"] = reasoning["effort"];
  const Json text = body.value("text", Json());
  if (text.is_object() && text.contains("format")) out->body["response_format"] = text["format"];
}

Json echo_of(const Json& body) {
  const std::pair<const char*, Json> kMembers[] = {{"instructions", {}},
                                                   {"max_output_tokens", {}},
                                                   {"metadata", Json::object()},
                                                   {"parallel_tool_calls", true},
                                                   {"reasoning", {{"effort", {}}, {"summary", {}}}},
                                                   {"temperature", {}},
                                                   {"text", {{"format", {{"type", "text"}}}}},
                                                   {"tool_choice", "auto"},
                                                   {"tools", Json::array()},
                                                   {"top_p", {}}};
  Json echo = Json::object();
  for (const auto& [name, otherwise] : kMembers) {
    const Json given = body.value(name, Json());
    echo[name] = given.is_null() ? otherwise : given;
  }
  return echo;
}

}  // namespace

Result<Translated> translate_responses(const Json& body) {
  if (!body.is_object()) return fail(Error::bad_argument, "the body is not a JSON object", "body");
  KVASIR_CHECK(check_state(body));
  Translated out;
  KVASIR_CHECK(add_input(body, &out));
  KVASIR_CHECK(add_tools(body, &out));
  add_options(body, &out);
  out.echo = echo_of(body);
  if (word(body, "truncation") == "auto") out.ignored.push_back("truncation");
  constexpr std::array<std::string_view, 12> kRead{
      "input", "instructions",         "tools",        "tool_choice", "max_output_tokens", "reasoning",
      "text",  "previous_response_id", "conversation", "prompt",      "background",        "truncation"};
  for (const auto& [name, value] : body.items())
    if (!out.body.contains(name) && std::find(kRead.begin(), kRead.end(), name) == kRead.end()) out.body[name] = value;
  return out;
}

}  // namespace kvasir::serve
