// DeepSeek V3, R1 and V3.1: <｜tool▁calls▁begin｜>, the calls, <｜tool▁calls▁end｜>.
// A call of V3 and R1: <｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME, a line break, the arguments in a ```json fence,
// <｜tool▁call▁end｜>. A call of V3.1: <｜tool▁call▁begin｜>NAME<｜tool▁sep｜>{...} <｜tool▁call▁end｜>.
// Source: the models' chat templates.
#include <utility>

#include "chat/formats/json_call.h"

namespace kvasir {
namespace {

// The bars and underscores in these texts are U+FF5C and U+2581.
constexpr std::string_view kCallBegin = "<\uFF5Ctool\u2581call\u2581begin\uFF5C>";
constexpr std::string_view kSep = "<\uFF5Ctool\u2581sep\uFF5C>";
constexpr std::string_view kCallsEnd = "<\uFF5Ctool\u2581calls\u2581end\uFF5C>";

class DeepSeek : public CallReader {
 public:
  CallStep take(char c, CallSink& sink) override {
    if (state_ == State::arguments) return take_arguments(c, sink);
    text_ += c;
    if (state_ == State::head) {
      if (text_.ends_with(kCallsEnd)) return CallStep::last;
      if (text_.ends_with(kSep)) {
        // The text before the separator is the name, or the word "function" if the name follows.
        text_.resize(text_.size() - kSep.size());
        const size_t begin = text_.rfind(kCallBegin);
        if (begin != text_.npos) text_.erase(0, begin + kCallBegin.size());
        name_ = std::exchange(text_, {});
        state_ = State::name;
      }
      return CallStep::more;
    }
    if (c != '{' && !(c == '\n' && state_ == State::name)) return CallStep::more;
    if (c == '\n') {
      text_.pop_back();
      if (!text_.empty()) name_ = std::exchange(text_, {});
      state_ = State::fence;
      return CallStep::more;
    }
    if (!sink.begin(name_)) return CallStep::not_a_call;
    value_ = {};
    state_ = State::arguments;
    return take_arguments(c, sink);
  }

 private:
  enum class State { head, name, fence, arguments };

  CallStep take_arguments(char c, CallSink& sink) {
    const CallStep step = value_.take(c);
    if (step != CallStep::not_a_call) sink.arguments({&c, 1});
    if (step == CallStep::last) sink.end();
    if (step != CallStep::more) {
      text_.clear();
      state_ = State::head;
    }
    return CallStep::more;
  }

  State state_ = State::head;
  std::string text_, name_;
  JsonValueEnd value_{};
};

constexpr std::string_view kBegins[] = {"<\uFF5Ctool\u2581calls\u2581begin\uFF5C>"};

}  // namespace

extern const CallFormat format_deepseek;
const CallFormat format_deepseek{
    .name = "deepseek",
    .detects = [](std::string_view jinja) { return jinja.find(kCallBegin) != jinja.npos; },
    .begins = kBegins,
    .reader = []() -> std::unique_ptr<CallReader> { return std::make_unique<DeepSeek>(); }};

}  // namespace kvasir
