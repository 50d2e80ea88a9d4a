// Translates requests of Anthropic's Messages. Source: docs.anthropic.com/en/api/messages.
#include <array>

#include <fmt/format.h>

#include "serve/api/field_values.h"
#include "serve/api/translate.h"

namespace kvasir::serve {
namespace {

std::string type_of(const Json& block) {
  const Json type = block.is_object() ? block.value("type", Json()) : Json();
  return type.is_string() ? type.get<std::string>() : std::string();
}

tl::unexpected<Error> no_place(const Json& block, const std::string& where) {
  return fail(Error::unsupported,
              fmt::format("blocks of type {} are not supported", shown(block.value("type", Json()))), where, "text");
}

// Reads a string, or blocks of text.
Result<std::string> text_of(const Json& value, const std::string& where) {
  if (value.is_null()) return std::string();
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return fail(Error::bad_argument, shown(value) + " is no text", where, "a string or blocks");
  std::string text;
  for (size_t i = 0; i < value.size(); ++i) {
    const std::string here = fmt::format("{}[{}]", where, i);
    if (!value[i].is_object()) return fail(Error::bad_argument, shown(value[i]) + " is no block", here);
    if (type_of(value[i]) != "text") return no_place(value[i], here);
    KVASIR_TRY(const std::string more, as_string(value[i].value("text", Json())));
    text += more;
  }
  return text;
}

// Some clients send this line, which changes with each request, so no prompt would share a prefix with the cache.
constexpr std::string_view kBilling = "x-anthropic-billing-header";

Result<void> add_system(const Json& value, Translated* out) {
  Json system = value;
  if (system.is_array()) {
    system = Json::array();
    for (const Json& block : value) {
      const Json text = block.is_object() ? block.value("text", Json()) : Json();
      if (text.is_string() && text.get<std::string>().starts_with(kBilling))
        out->ignored.push_back("system: " + std::string(kBilling));
      else
        system.push_back(block);
    }
  }
  KVASIR_TRY(const std::string text, text_of(system, "system"));
  if (!text.empty()) out->body["messages"].push_back({{"role", "system"}, {"content", text}});
  return {};
}

// Adds the parts of a user's message in order. Tool results become separate messages.
Result<void> add_user(const Json& content, const std::string& where, Json* messages) {
  std::string text;
  bool has_text = false;
  const auto flush = [&] {
    if (std::exchange(has_text, false)) messages->push_back({{"role", "user"}, {"content", std::exchange(text, {})}});
  };
  for (size_t i = 0; i < content.size(); ++i) {
    const Json& block = content[i];
    const std::string here = fmt::format("{}.content[{}]", where, i), type = type_of(block);
    if (type == "text") {
      KVASIR_TRY(const std::string more, as_string(block.value("text", Json())));
      text += more;
      has_text = true;
    } else if (type == "tool_result") {
      flush();
      KVASIR_TRY(const std::string result, text_of(block.value("content", Json()), here + ".content"));
      messages->push_back(
          {{"role", "tool"}, {"tool_call_id", block.value("tool_use_id", Json())}, {"content", result}});
    } else if (block.is_object()) {
      return no_place(block, here);
    } else {
      return fail(Error::bad_argument, shown(block) + " is no block", here, R"({"type": "text", "text": "..."})");
    }
  }
  flush();
  return {};
}

Result<Json> assistant_of(const Json& content, const std::string& where) {
  std::string text, reasoning;
  Json calls = Json::array();
  for (size_t i = 0; i < content.size(); ++i) {
    const Json& block = content[i];
    const std::string here = fmt::format("{}.content[{}]", where, i), type = type_of(block);
    if (type == "text") {
      KVASIR_TRY(const std::string more, as_string(block.value("text", Json())));
      text += more;
    } else if (type == "thinking") {
      KVASIR_TRY(const std::string more, as_string(block.value("thinking", Json())));
      reasoning += more;
    } else if (type == "tool_use") {
      const Json name = block.value("name", Json());
      if (!name.is_string()) return fail(Error::bad_argument, "a call without a name", here + ".name");
      calls.push_back({{"id", block.value("id", Json())},
                       {"type", "function"},
                       {"function", {{"name", name}, {"arguments", block.value("input", Json::object())}}}});
    } else if (type != "redacted_thinking") {
      return block.is_object() ? no_place(block, here) : fail(Error::bad_argument, "no block", here);
    }
  }
  Json message = {{"role", "assistant"}, {"content", text}};
  if (!reasoning.empty()) message["reasoning_content"] = reasoning;
  if (!calls.empty()) message["tool_calls"] = std::move(calls);
  return message;
}

Result<void> add_messages(const Json& body, Translated* out) {
  const Json list = body.value("messages", Json());
  if (!list.is_array() || list.empty())
    return fail(Error::bad_argument, shown(list) + " is no list of messages", "messages", "at least one message");
  Json& messages = out->body["messages"];
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string where = fmt::format("messages[{}]", i);
    const Json role = list[i].is_object() ? list[i].value("role", Json()) : Json();
    if (role != "user" && role != "assistant" && role != "system")
      return fail(Error::bad_argument, shown(role) + " is no role", where + ".role", "user, assistant");
    Json content = list[i].value("content", Json());
    if (content.is_string()) content = Json::array({{{"type", "text"}, {"text", content}}});
    if (!content.is_array())
      return fail(Error::bad_argument, shown(content) + " is no content", where + ".content", "a string or blocks");
    if (role == "user") {
      KVASIR_CHECK(add_user(content, where, &messages));
    } else if (role == "assistant") {
      KVASIR_TRY(messages.emplace_back(), assistant_of(content, where));
    } else {
      KVASIR_TRY(const std::string text, text_of(content, where + ".content"));
      messages.push_back({{"role", "system"}, {"content", text}});
    }
  }
  // A last message of the assistant is the beginning of an answer, which is continued.
  const Json& last = messages.back();
  if (last["role"] == "assistant" && !last.contains("tool_calls")) out->body["continue_final_message"] = true;
  return {};
}

Result<void> add_tools(const Json& body, Translated* out) {
  const Json tools = body.value("tools", Json());
  if (!tools.is_null() && !tools.is_array()) return fail(Error::bad_argument, shown(tools) + " is no list", "tools");
  for (size_t i = 0; i < tools.size(); ++i) {
    const Json& tool = tools[i];
    const std::string where = fmt::format("tools[{}]", i);
    if (!tool.is_object()) return fail(Error::bad_argument, shown(tool) + " is no tool", where);
    if (const std::string type = type_of(tool); !type.empty() && type != "custom") {
      out->ignored.push_back(where);
      continue;
    }
    Json function = {{"name", tool.value("name", Json())}};
    if (tool.contains("description")) function["description"] = tool["description"];
    function["parameters"] = tool.value("input_schema", Json::object());
    out->body["tools"].push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  const Json choice = body.value("tool_choice", Json());
  if (choice.is_null()) return {};
  const std::string type = type_of(choice);
  if (type == "any" || type == "tool")
    return fail(Error::unsupported, "only auto and none are supported: constrained answers are not supported yet",
                "tool_choice");
  out->body["tool_choice"] = type;
  if (choice.value("disable_parallel_tool_use", Json()) == true) out->body["parallel_tool_calls"] = false;
  return {};
}

// Translates fields whose names or forms differ.
Result<void> add_options(const Json& body, bool counts, Translated* out) {
  if (body.contains("max_tokens"))
    out->body["max_tokens"] = body["max_tokens"];
  else if (!counts)
    return fail(Error::bad_argument, "it is missing", "max_tokens", "a number of tokens");
  if (body.contains("stop_sequences")) out->body["stop"] = body["stop_sequences"];
  if (const std::string thinking = type_of(body.value("thinking", Json())); !thinking.empty())
    out->body["chat_template_kwargs"] = {{"enable_thinking", thinking != "disabled"}};
  const Json output = body.value("output_config", Json());
  if (output.is_object() && output.contains("format")) out->body["response_format"] = output["format"];
  return {};
}

}  // namespace

Result<Translated> translate_messages(const Json& body, bool counts) {
  if (!body.is_object()) return fail(Error::bad_argument, "the body is not a JSON object", "body");
  Translated out;
  out.body["messages"] = Json::array();
  if (body.contains("system")) KVASIR_CHECK(add_system(body["system"], &out));
  KVASIR_CHECK(add_messages(body, &out));
  KVASIR_CHECK(add_tools(body, &out));
  KVASIR_CHECK(add_options(body, counts, &out));
  constexpr std::array<std::string_view, 8> kRead{"system",         "messages", "tools",         "tool_choice",
                                                  "stop_sequences", "thinking", "output_config", "cache_control"};
  for (const auto& [name, value] : body.items())
    if (!out.body.contains(name) && std::find(kRead.begin(), kRead.end(), name) == kRead.end()) out.body[name] = value;
  return out;
}

}  // namespace kvasir::serve
