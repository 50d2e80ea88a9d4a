// Renders messages to text, and encodes text to ids.
#include "cli/conversation_format.h"

#include <algorithm>

#include "cli/json.h"

namespace kvasir::cli {
namespace {

// The data parts of `text` after byte `from`, with offsets counted from there.
std::vector<TextSpan> data_from(const ChatText& text, size_t from) {
  std::vector<TextSpan> data;
  for (const TextSpan& span : text.data)
    if (span.end > from) data.push_back({.begin = std::max(span.begin, from) - from, .end = span.end - from});
  return data;
}

}  // namespace

ConversationFormat ConversationFormat::plain(std::string user, std::string assistant) {
  ConversationFormat format;
  format.user_ = std::move(user);
  format.assistant_ = std::move(assistant);
  return format;
}

Result<ConversationFormat> ConversationFormat::of_template(const std::string& model, const std::string& file,
                                                           ChatOptions options) {
  ConversationFormat format;
  format.options_ = options;
  KVASIR_TRY(format.template_, ChatTemplate::of_model(model, file));
  return format;
}

Result<ChatText> ConversationFormat::prompt(std::span<const Message> messages) const {
  if (is_plain()) {
    ChatText text{.text = {}, .data = {}};
    for (const Message& message : messages) {
      const bool asks = message.role == "user";
      if (asks) text.text += (text.text.empty() ? "" : "\n") + user_;
      text.text += message.content;
      if (asks) text.text += "\n" + assistant_;
    }
    return text;
  }
  Json list = Json::array();
  for (const Message& message : messages) list.push_back({{"role", message.role}, {"content", message.content}});
  const Json conversation{{"messages", list}, {"add_generation_prompt", true}};
  auto text = template_->render(conversation.text(), options_);
  if (text) return text;
  Error error = std::move(text).error();
  // A refusal by the template has the template's own words, so only its place is named.
  error.where = error.where == "raise_exception" ? "the chat template" : "the chat template, " + error.where;
  return tl::unexpected(std::move(error));
}

// With a template, BOS is not added: the template itself writes it if the model wants one.
Result<std::vector<int>> ConversationFormat::encode(const Tokenizer& tokenizer, std::span<const int> before,
                                                    const ChatText& text, size_t from) const {
  const std::string_view rest = std::string_view(text.text).substr(from);
  const std::vector<TextSpan> data = data_from(text, from);
  if (before.empty() && !is_plain()) return tokenizer.encode(rest, data, false);
  return encode_after(tokenizer, before, rest, data);
}

std::vector<std::string> ConversationFormat::stops() const {
  if (!is_plain() || user_.empty()) return {};
  return {"\n" + user_};
}

}  // namespace kvasir::cli
