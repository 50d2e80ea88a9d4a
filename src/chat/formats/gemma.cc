// call:NAME{key:<escape>text<escape>,n:1}, which is not JSON; the reader converts the arguments to JSON. FunctionGemma
// writes a call between <start_function_call> and <end_function_call>; Gemma 4 between <|tool_call> and <tool_call|>,
// with texts between <|"|>. Source: ai.google.dev/gemma/docs, "FunctionGemma formatting" and "Function calling with
// Gemma 4".
#include <utility>

#include "chat/formats/json_call.h"

namespace kvasir {
namespace {

class Gemma : public CallReader {
 public:
  CallStep take(char c, CallSink& sink) override {
    switch (state_) {
      case State::name:
        return take_name(c, sink);
      case State::mark:
        mark_ += c;
        if (c == '>') {
          sink.arguments("\"");
          state_ = State::text;
        }
        return CallStep::more;
      case State::text:
        return take_text(c, sink);
      case State::key:
        return take_key(c, sink);
      case State::value:
        return take_value(c, sink);
      case State::end:
        if (is_json_space(c) || c == '<' || ends_) {
          ends_ = ends_ || c == '<';
          return c == '>' ? CallStep::last : CallStep::more;
        }
        return CallStep::after;
    }
    return CallStep::not_a_call;
  }

 private:
  enum class State { name, key, value, mark, text, end };

  CallStep take_name(char c, CallSink& sink) {
    if (c != '{') {
      text_ += c;
      return is_json_space(c) || text_.size() > kMostName ? CallStep::not_a_call : CallStep::more;
    }
    constexpr std::string_view kCall = "call:";
    if (!text_.starts_with(kCall) || !sink.begin(std::string_view(text_).substr(kCall.size())))
      return CallStep::not_a_call;
    text_.clear();
    return open(c, sink);
  }

  CallStep open(char c, CallSink& sink) {
    sink.arguments({&c, 1});
    open_ += c;
    state_ = c == '{' ? State::key : State::value;
    return CallStep::more;
  }

  CallStep close(char c, CallSink& sink) {
    sink.arguments({&c, 1});
    open_.pop_back();
    state_ = open_.empty() ? State::end : State::value;
    if (open_.empty()) sink.end();
    return CallStep::more;
  }

  CallStep take_key(char c, CallSink& sink) {
    if (c == '}') return close(c, sink);
    if (c == ':') {
      sink.arguments("\"" + std::exchange(text_, {}) + "\":");
      state_ = State::value;
    } else if (!is_json_space(c)) {
      if (c == '"' || c == '\\') text_ += '\\';
      text_ += c;
    }
    return CallStep::more;
  }

  CallStep take_value(char c, CallSink& sink) {
    if (c == '<') {
      mark_ = c;
      state_ = State::mark;
    } else if (c == '{' || c == '[') {
      return open(c, sink);
    } else if (c == '}' || c == ']') {
      return close(c, sink);
    } else {
      sink.arguments({&c, 1});
      if (c == ',' && open_.back() == '{') state_ = State::key;
    }
    return CallStep::more;
  }

  // Holds back characters that may be the closing mark.
  CallStep take_text(char c, CallSink& sink) {
    text_ += c;
    while (!text_.empty() && !mark_.starts_with(text_)) {
      sink.arguments(escaped(text_[0]));
      text_.erase(0, 1);
    }
    if (text_ == mark_) {
      text_.clear();
      sink.arguments("\"");
      state_ = State::value;
    }
    return CallStep::more;
  }

  static std::string escaped(char c) {
    constexpr char kDigits[] = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') return {'\\', c};
    if (c == '\n') return "\\n";
    if (byte < ' ') return {'\\', 'u', '0', '0', kDigits[byte >> 4], kDigits[byte & 15]};
    return {c};
  }

  static constexpr size_t kMostName = 256;
  State state_ = State::name;
  std::string text_, mark_, open_;
  bool ends_ = false;
};

constexpr std::string_view kBegins[] = {"<start_function_call>", "<|tool_call>"};

}  // namespace

extern const CallFormat format_gemma;
const CallFormat format_gemma{.name = "gemma",
                              .detects =
                                  [](std::string_view jinja) {
                                    return jinja.find("<start_function_call>") != jinja.npos ||
                                           jinja.find("<|tool_call>") != jinja.npos;
                                  },
                              .begins = kBegins,
                              .think = {"<|channel>thought", "<channel|>"},
                              .reader = []() -> std::unique_ptr<CallReader> { return std::make_unique<Gemma>(); }};

}  // namespace kvasir
