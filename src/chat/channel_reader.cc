// Reads answers made of messages with channels. The prompt ends with <|start|>assistant, so an answer begins in the
// head of its first message.
#include <string>

#include "chat/answer_reader.h"
#include "chat/mark_search.h"

namespace kvasir {
namespace {

constexpr std::string_view kMessage = "<|message|>", kChannel = "<|channel|>", kTo = "to=", kFunctions = "functions.";

// Returns the word after `key`, up to a space or a mark.
std::string_view word_after(std::string_view head, std::string_view key) {
  const size_t at = head.find(key);
  if (at == head.npos) return {};
  head.remove_prefix(at + key.size());
  return head.substr(0, head.find_first_of(" <"));
}

class ChannelReader : public AnswerReader {
 public:
  explicit ChannelReader(PartList& out) : out_(out) {}

  void take(char c) override { in_head_ ? take_head(c) : take_body(c); }

  void finish() override {
    if (!in_head_) put(ends_.rest());
  }

  bool reasons() const override { return !in_head_ && kind_ == AnswerPart::reasoning; }

 private:
  void take_head(char c) {
    head_ += c;
    // An answer that does not begin with a head is plain text.
    if (is_first_ && head_.size() == 1 && c != '<' && c != ' ') {
      kind_ = AnswerPart::content;
      in_head_ = is_first_ = false;
      for (const char held : std::exchange(head_, {})) take(held);
      return;
    }
    if (!head_.ends_with(kMessage)) return;
    const std::string head = std::exchange(head_, {});
    std::string_view to = word_after(head, kTo);
    kind_ = word_after(head, kChannel) == "analysis" ? AnswerPart::reasoning : AnswerPart::content;
    is_call_ = false;
    if (!to.empty() && out_.reads_calls()) {
      if (to.starts_with(kFunctions)) to.remove_prefix(kFunctions.size());
      is_call_ = out_.begin(to);
    }
    in_head_ = is_first_ = false;
  }

  void take_body(char c) {
    std::string_view found;
    put(ends_.take(c, &found));
    if (found.empty()) return;
    if (is_call_) out_.end();
    in_head_ = true;
  }

  void put(std::string_view text) {
    if (text.empty()) return;
    if (is_call_)
      out_.arguments(text);
    else
      out_.add(kind_, text);
  }

  PartList& out_;
  MarkSearch ends_{{"<|end|>", "<|call|>", "<|return|>", "<|start|>"}};
  std::string head_;
  AnswerPart::Kind kind_ = AnswerPart::content;
  bool in_head_ = true, is_first_ = true, is_call_ = false;
};

}  // namespace

std::unique_ptr<AnswerReader> channel_reader(PartList& out) { return std::make_unique<ChannelReader>(out); }

}  // namespace kvasir
