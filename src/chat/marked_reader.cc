// Reads answers in which marks enclose the reasoning and begin the calls.
#include <string>

#include "chat/answer_reader.h"
#include "chat/mark_search.h"

namespace kvasir {
namespace {

std::vector<std::string_view> begins_of(const CallFormat& format, const PartList& out) {
  if (!out.reads_calls()) return {};
  return {format.begins.begin(), format.begins.end()};
}

class MarkedReader : public AnswerReader {
 public:
  MarkedReader(const CallFormat& format, PartList& out, bool in_reasoning)
      : format_(format),
        out_(out),
        state_(in_reasoning ? State::reasoning : State::start),
        skips_lines_(in_reasoning),
        begins_(begins_of(format, out), format.own_line && out.reads_calls()),
        end_({format.think.end}, true) {}

  void take(char c) override {
    switch (state_) {
      case State::start:
        return take_start(c);
      case State::reasoning:
        return take_reasoning(c);
      case State::content:
        return take_content(c);
      case State::call:
        return take_call(c);
    }
  }

  void finish() override {
    if (state_ == State::start) add(AnswerPart::content, held_);
    if (state_ == State::reasoning) add(AnswerPart::reasoning, end_.rest());
    if (state_ == State::content) add(AnswerPart::content, begins_.rest());
    if (state_ == State::call && !has_begun()) add(AnswerPart::content, held_);
  }

  bool reasons() const override { return state_ == State::reasoning; }

 private:
  enum class State { start, reasoning, content, call };

  // Skips white space; then reasoning may begin, or a call that is the whole answer.
  void take_start(char c) {
    held_ += c;
    const size_t first = held_.find_first_not_of(" \n\t\r");
    if (first == held_.npos) return;
    const std::string_view text = std::string_view(held_).substr(first);
    if (format_.bare && out_.reads_calls() && text == "{") {
      begin_calls(true);
      (void)reader_->take('{', out_);
    } else if (text == format_.think.begin) {
      held_.clear();
      skips_lines_ = true;
      state_ = State::reasoning;
    } else if (!format_.think.begin.starts_with(text)) {
      state_ = State::content;
      for (const char held : std::exchange(held_, {})) take(held);
    }
  }

  void take_reasoning(char c) {
    std::string_view found;
    add(AnswerPart::reasoning, end_.take(c, &found));
    if (found.empty()) return;
    (void)end_.lines();
    skips_lines_ = true;
    state_ = State::start;
  }

  void take_content(char c) {
    std::string_view found;
    add(AnswerPart::content, begins_.take(c, &found));
    if (found.empty()) return;
    std::string lines = begins_.lines();
    if (!lines.empty()) {
      lines.pop_back();  // the line break that the template writes before a call
      held_ = '\n';
    }
    add(AnswerPart::content, lines);
    held_ += found;
    begin_calls(false);
  }

  void begin_calls(bool only_known) {
    reader_ = format_.reader();
    out_.only_known(only_known);
    begun_before_ = out_.begun();
    state_ = State::call;
  }

  bool has_begun() const { return out_.begun() > begun_before_; }

  void take_call(char c) {
    const CallStep step = reader_->take(c, out_);
    if (has_begun())
      held_.clear();
    else
      held_ += c;
    if (step == CallStep::more) return;
    state_ = State::content;
    if (has_begun()) skips_lines_ = true;
    if (step == CallStep::not_a_call) add(AnswerPart::content, held_);
    held_.clear();
    if (step == CallStep::after) take(c);
  }

  // Line breaks between reasoning, calls and text belong to the format and are dropped.
  void add(AnswerPart::Kind kind, std::string_view text) {
    if (skips_lines_) text.remove_prefix(std::min(text.find_first_not_of('\n'), text.size()));
    if (text.empty()) return;
    skips_lines_ = false;
    out_.add(kind, text);
  }

  const CallFormat& format_;
  PartList& out_;
  State state_;
  bool skips_lines_;
  MarkSearch begins_, end_;
  std::unique_ptr<CallReader> reader_ = {};
  std::string held_ = {};  // characters of the start, or of a call that may turn out to be text
  int begun_before_ = 0;
};

}  // namespace

std::unique_ptr<AnswerReader> marked_reader(const CallFormat& format, PartList& out, bool in_reasoning) {
  return std::make_unique<MarkedReader>(format, out, in_reasoning);
}

}  // namespace kvasir
