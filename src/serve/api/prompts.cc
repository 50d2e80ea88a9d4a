// Renders messages and tokenizes prompts.
#include "serve/api/prompts.h"

#include <fmt/format.h>

#include "serve/api/field_values.h"

namespace kvasir::serve {
namespace {

std::string at(size_t message) { return fmt::format("messages[{}]", message); }

// Reads the content of a message: a string, or parts that are all texts.
Result<std::string> content_of(const Json& message, const std::string& where) {
  const auto content = message.find("content");
  if (content == message.end() || content->is_null()) return std::string();
  if (content->is_string()) return content->get<std::string>();
  if (!content->is_array())
    return fail(Error::bad_argument, shown(*content) + " is no text", where + ".content", "a string or text parts");
  std::string text;
  for (size_t i = 0; i < content->size(); ++i) {
    const Json& part = (*content)[i];
    const std::string here = fmt::format("{}.content[{}]", where, i);
    if (!part.is_object() || !part.contains("type"))
      return fail(Error::bad_argument, "a part without a type", here, R"({"type": "text", "text": "..."})");
    if (part["type"] != "text")
      return fail(Error::unsupported, fmt::format("parts of type {} are not supported", shown(part["type"])), here,
                  "text parts");
    KVASIR_TRY(const std::string more, as_string(part.value("text", Json())));
    text += more;
  }
  return text;
}

struct Turn {
  std::string role, content;
};

Result<std::vector<Turn>> turns_of(const Json& messages) {
  std::vector<Turn> turns;
  for (size_t i = 0; i < messages.size(); ++i) {
    const Json& message = messages[i];
    if (!message.is_object() || !message.contains("role"))
      return fail(Error::bad_argument, "a message without a role", at(i), R"({"role": "user", "content": "..."})");
    Turn turn;
    const auto role = as_string(message["role"]);
    if (!role) return fail(Error::bad_argument, role.error().what, at(i) + ".role", "user");
    turn.role = *role == "developer" ? "system" : *role;
    if (turn.role != "system" && turn.role != "user" && turn.role != "assistant")
      return fail(Error::unsupported, fmt::format("the role \"{}\" is not supported in this chat format", *role),
                  at(i) + ".role", "system, user, assistant");
    const auto calls = message.find("tool_calls");
    if (calls != message.end() && !calls->empty())
      return fail(Error::unsupported, "tool calls are not supported in this chat format", at(i) + ".tool_calls");
    KVASIR_TRY(turn.content, content_of(message, at(i)));
    turns.push_back(std::move(turn));
  }
  return turns;
}

}  // namespace

Result<std::string> render_plain(const Json& messages, bool add_turn, bool goes_on, std::vector<std::string>* stops) {
  KVASIR_TRY(const std::vector<Turn> turns, turns_of(messages));
  if (goes_on && turns.back().role != "assistant")
    return fail(Error::bad_argument, "the last message is not the assistant's", "continue_final_message",
                "a last message of the assistant");
  std::string text;
  for (const Turn& turn : turns) {
    if (!text.empty()) text += '\n';
    if (turn.role == "user") text += "User: ";
    // Exactly one space follows the colon, whether or not the client kept the one that the model generated.
    if (turn.role == "assistant") text += turn.content.starts_with(' ') ? "Assistant:" : "Assistant: ";
    text += turn.content;
  }
  if (add_turn && !goes_on) text += "\nAssistant:";
  stops->push_back("\nUser:");
  return text;
}

namespace {

Result<void> check_tools(const Call& call, const ChatFormat& format) {
  if (call.tools.empty() || !call.calls_tools) return {};
  if (format.chat_template == nullptr)
    return fail(Error::unsupported, "tools are not supported in this chat format", "tools");
  if (format.chat_template->writes_tools()) return {};
  return fail(Error::unsupported, "this model's chat template does not support tools", "tools",
              "a template that supports tools, or no tools");
}

AnswerOptions answer_options(const Call& call) {
  AnswerOptions options{.one_call = call.one_call};
  if (!call.calls_tools || !call.tools.is_array()) return options;
  for (const Json& tool : call.tools) options.tools.push_back(tool["function"]["name"].get<std::string>());
  return options;
}

// Lists variables that the template does not read as ignored.
void note_unread(Call* call, const ChatFormat& format) {
  if (!call->template_values.is_object() || format.chat_template == nullptr) return;
  for (const auto& [name, value] : call->template_values.items())
    if (!format.chat_template->reads(name)) call->ignored.push_back(name);
}

}  // namespace

Result<ChatText> render_conversation(const Call& call, const ChatFormat& format, std::vector<std::string>* stops) {
  if (format.is_none()) return fail(Error::unsupported, format.why_none, "messages");
  KVASIR_CHECK(check_tools(call, format));
  if (format.chat_template == nullptr) {
    if (!call.template_values.empty())
      return fail(Error::unsupported, "this chat format has no template variables",
                  call.template_values.contains("reasoning_effort") ? "reasoning_effort" : "chat_template_kwargs");
    KVASIR_TRY(std::string text, render_plain(call.messages, call.add_turn, call.goes_on, stops));
    return ChatText{.text = std::move(text)};
  }
  Json conversation = call.template_values.is_null() ? Json::object() : call.template_values;
  conversation["messages"] = call.messages;
  if (!call.tools.empty()) conversation["tools"] = call.tools;
  conversation["add_generation_prompt"] = call.add_turn && !call.goes_on;
  if (call.goes_on) conversation["continue_final_message"] = true;
  auto text = format.chat_template->render(to_text(conversation), format.options);
  if (text) return text;
  Error error = std::move(text).error();
  if (error.where != "raise_exception" && error.where != "continue_final_message")
    error.what = fmt::format("the chat template, {}: {}", error.where, error.what);
  error.where = error.where == "continue_final_message" ? error.where : "messages";
  return tl::unexpected(std::move(error));
}

Result<std::vector<int>> conversation_ids(const ChatText& text, const ChatFormat& format, const Tokenizer& tokenizer) {
  if (format.chat_template == nullptr) return tokenizer.encode(text.text);
  return tokenizer.encode(text.text, text.data, false);
}

Result<std::vector<std::vector<int>>> prompt_ids(Call* call, const Model& model, const ChatFormat& format) {
  const auto& tokenizer = model.tokenizer();
  const auto check = [&](const std::vector<int>& ids) -> Result<void> {
    if (!ids.empty()) return {};
    return fail(Error::bad_argument, "it has no tokens", call->kind == kEmbeddings ? "input" : "prompt");
  };
  const auto need_tokenizer = [&]() -> Result<void> {
    if (tokenizer != nullptr) return {};
    return fail(Error::unsupported, "this model came without a tokenizer", "prompt", "token ids");
  };
  std::vector<std::vector<int>> all;
  if (call->kind == kChat) {
    KVASIR_CHECK(need_tokenizer());
    KVASIR_TRY(ChatText text, render_conversation(*call, format, &call->request.options.stop));
    KVASIR_TRY(all.emplace_back(), conversation_ids(text, format, *tokenizer));
    note_unread(call, format);
    if (format.chat_template != nullptr)
      call->make_parser = [chat_template = format.chat_template, options = answer_options(*call),
                           prompt = std::make_shared<const ChatText>(std::move(text))] {
        return chat_template->parser(*prompt, options);
      };
    KVASIR_CHECK(check(all.back()));
    return all;
  }
  for (Prompt& prompt : call->prompts) {
    if (auto* ids = std::get_if<std::vector<int>>(&prompt)) {
      all.push_back(std::move(*ids));
    } else {
      KVASIR_CHECK(need_tokenizer());
      KVASIR_TRY(all.emplace_back(), tokenizer->encode(std::get<std::string>(prompt)));
    }
    KVASIR_CHECK(check(all.back()));
  }
  call->prompts.clear();
  return all;
}

}  // namespace kvasir::serve
