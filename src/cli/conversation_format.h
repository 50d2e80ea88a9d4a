// How a conversation is rendered for the model: by its chat template, or as plain turns. The turns and their ids are in
// conversation.h.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <kvasir/chat.h>

namespace kvasir::cli {

/// A message; role is "system", "user" or "assistant".
struct Message {
  std::string role, content;
};

/// Immutable.
class ConversationFormat {
 public:
  /// Plain turns. `user` and `assistant`: how the line of a turn and that of an answer begin.
  static ConversationFormat plain(std::string user, std::string assistant);
  /// The model's chat template, or the Jinja of `file` if it is not empty. Errors: those of ChatTemplate::of_model().
  static Result<ConversationFormat> of_template(const std::string& model, const std::string& file,
                                                ChatOptions options = {});

  bool is_plain() const { return template_ == nullptr; }
  /// The prompt for the next answer. Requires: the last message is a user's. Errors: a refusal of the template.
  Result<ChatText> prompt(std::span<const Message> messages) const;
  /// The ids of `text` from byte `from` on. `before`: the ids of the text before that.
  Result<std::vector<int>> encode(const Tokenizer& tokenizer, std::span<const int> before, const ChatText& text,
                                  size_t from) const;
  /// Stop strings that end an answer, besides the model's own tokens.
  std::vector<std::string> stops() const;

 private:
  std::shared_ptr<const ChatTemplate> template_;
  ChatOptions options_ = {};
  std::string user_, assistant_;  // for plain turns
};

}  // namespace kvasir::cli
