// Each message is converted on its own.
#include "chat/adapt.h"

#include <string>

namespace kvasir {
namespace {

using Json = nlohmann::ordered_json;

void join_parts(Json* content) {
  std::string text;
  for (const Json& part : *content) {
    if (!part.is_object() || part.value("type", Json()) != "text" || !part.value("text", Json()).is_string()) return;
    text += part["text"].get_ref<const std::string&>();
  }
  *content = std::move(text);
}

void parse_arguments(Json* calls) {
  for (Json& call : *calls) {
    if (!call.is_object() || !call.contains("function") || !call["function"].is_object()) continue;
    Json& arguments = call["function"]["arguments"];
    if (!arguments.is_string()) continue;
    Json parsed = Json::parse(arguments.get_ref<const std::string&>(), nullptr, false);
    if (parsed.is_object()) arguments = std::move(parsed);
  }
}

}  // namespace

void adapt_conversation(Json* conversation, bool walks_parts, bool knows_developer) {
  if (!conversation->is_object() || !conversation->contains("messages") || !(*conversation)["messages"].is_array())
    return;
  for (Json& message : (*conversation)["messages"]) {
    if (!message.is_object()) continue;
    if (!knows_developer && message.value("role", Json()) == "developer") message["role"] = "system";
    if (message.contains("content") && message["content"].is_array() && !walks_parts) join_parts(&message["content"]);
    if (message.contains("tool_calls") && message["tool_calls"].is_array()) parse_arguments(&message["tool_calls"]);
  }
}

}  // namespace kvasir
