// Converts a call's messages and prompts to token ids, which depend on the call alone.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <kvasir/chat.h>
#include <kvasir/model.h>

#include "serve/api/call.h"

namespace kvasir::serve {

/// Renders messages as plain turns, like `kvasir chat` without a template: "User: ...", "Assistant: ...". Appends to
/// `stops` the texts that end an answer in this format. Errors, with the index: an invalid message, or a role or part
/// that the format does not support.
Result<std::string> render_plain(const Json& messages, bool add_turn, bool goes_on, std::vector<std::string>* stops);

/// How a served model's conversations are rendered.
struct ChatFormat {
  std::shared_ptr<const ChatTemplate> chat_template = {};  ///< the model's template, or null
  ChatOptions options = {};                                ///< for rendering the template
  bool is_plain = false;                                   ///< without a template: use render_plain()
  std::string why_none = {};                               ///< with neither: the reason

  bool is_none() const { return chat_template == nullptr && !is_plain; }
};

/// Renders a call's messages. Errors: those of render_plain(); those of the template, with where = "messages".
Result<ChatText> render_conversation(const Call& call, const ChatFormat& format, std::vector<std::string>* stops);
/// Tokenizes a rendered conversation. If a template rendered it, adds no BOS token, since the template writes it.
Result<std::vector<int>> conversation_ids(const ChatText& text, const ChatFormat& format, const Tokenizer& tokenizer);

/// Returns the ids of every prompt of the call, and adds the format's stops to the call. Errors: those of
/// render_conversation() and of the tokenizer; a prompt without tokens.
Result<std::vector<std::vector<int>>> prompt_ids(Call* call, const Model& model, const ChatFormat& format);

}  // namespace kvasir::serve
