// From a call's messages and prompts to token ids. The ids are a function of the call alone.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <kvasir/chat.h>
#include <kvasir/model.h>

#include "serve/api/call.h"

namespace kvasir::serve {

/// The text of messages as turns of plain text, as `kvasir chat` has them: "User: ...", "Assistant: ...". `stops`:
/// texts that end an answer in this format. Errors: a message that is none, a role or a part that the format has no
/// place for, with its index.
Result<std::string> render_plain(const Json& messages, bool add_turn, bool goes_on, std::vector<std::string>* stops);

/// How a served model's talks are written.
struct ChatFormat {
  std::shared_ptr<const ChatTemplate> chat_template = {};  ///< the model's own
  ChatOptions options = {};                                ///< of its renderings
  bool is_plain = false;                                   ///< render_plain(), where there is none
  std::string why_none = {};                               ///< where there is neither

  bool is_none() const { return chat_template == nullptr && !is_plain; }
};

/// The text of a call's talk. Errors: those of render_plain(), what the template refuses; `where` is "messages".
Result<ChatText> render_talk(const Call& call, const ChatFormat& format, std::vector<std::string>* stops);
/// Its ids. A template writes the token that a text begins with, where it wants one.
Result<std::vector<int>> talk_ids(const ChatText& text, const ChatFormat& format, const Tokenizer& tokenizer);

/// The ids of every prompt of the call, whose stops are completed. Errors: those of render_talk() and of the
/// tokenizer, a prompt without tokens.
Result<std::vector<std::vector<int>>> prompt_ids(Call* call, const Model& model, const ChatFormat& format);

}  // namespace kvasir::serve
