// How a talk is written for the model: by its chat template, or as plain turns. What was said, and the ids that are
// kept of it, is talk.h's.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <kvasir/chat.h>

namespace kvasir::cli {

/// "system", "user" or "assistant", and what it says.
struct Message {
  std::string role, content;
};

/// Immutable.
class TalkFormat {
 public:
  /// What a turn and an answer begin with, in a line each.
  static TalkFormat plain(std::string user, std::string assistant);
  /// The model's template, or the Jinja of `file` where there is one. Errors: those of ChatTemplate::of_model().
  static Result<TalkFormat> of_template(const std::string& model, const std::string& file, ChatOptions options = {});

  bool is_plain() const { return template_ == nullptr; }
  /// The text after which the next answer begins. Requires: the last message is a user's. Errors: what the template
  /// refuses.
  Result<ChatText> prompt(std::span<const Message> messages) const;
  /// The ids of `text` from its byte `from` on, where `before` stands for what comes before that.
  Result<std::vector<int>> encode(const Tokenizer& tokenizer, std::span<const int> before, const ChatText& text,
                                  size_t from) const;
  /// Texts that end an answer, besides the model's own tokens.
  std::vector<std::string> stops() const;

 private:
  std::shared_ptr<const ChatTemplate> template_;
  ChatOptions options_ = {};
  std::string user_, assistant_;  // of plain turns
};

}  // namespace kvasir::cli
