// Mistral: up to tokenizer v7 [TOOL_CALLS][{"name": "f", "arguments": {...}}, ...]; from v11 on, for each call,
// [TOOL_CALLS]f[ARGS]{...}, with an optional [CALL_ID]. Source: mistralai/mistral-common, the instruct tokenizers.
#include "chat/formats/json_call.h"

namespace kvasir {
namespace {

class Mistral : public CallReader {
 public:
  CallStep take(char c, CallSink& sink) override {
    switch (state_) {
      case State::start:
        if (is_json_space(c)) return CallStep::more;
        if (c == '[') {
          state_ = State::between;
          return CallStep::more;
        }
        state_ = State::name;
        return take(c, sink);
      case State::between:
        return take_between(c, sink);
      case State::object:
        return take_object(c, sink);
      case State::name:
        return take_name(c, sink);
      case State::mark:
        if (c == ']') state_ = mark_ == "ARGS" ? State::arguments : State::id;
        mark_ += c;
        return CallStep::more;
      case State::id:
        if (c == '[') {
          mark_.clear();
          state_ = State::mark;
        }
        return CallStep::more;
      case State::arguments:
        return take_arguments(c, sink);
    }
    return CallStep::not_a_call;
  }

 private:
  enum class State { start, between, object, name, mark, id, arguments };

  CallStep take_between(char c, CallSink& sink) {
    if (c == ']') return CallStep::last;
    if (is_json_space(c) || c == ',') return CallStep::more;
    call_ = {};
    state_ = State::object;
    return take_object(c, sink);
  }

  CallStep take_object(char c, CallSink& sink) {
    const CallStep step = call_.take(c, sink);
    if (step == CallStep::not_a_call && !call_.begun()) return step;
    if (step != CallStep::more) state_ = State::between;
    return CallStep::more;
  }

  CallStep take_name(char c, CallSink& sink) {
    if (c == '{') {
      state_ = State::arguments;
      return take_arguments(c, sink);
    }
    if (c == '[') {
      mark_.clear();
      state_ = State::mark;
    } else if (is_json_space(c)) {
      return CallStep::not_a_call;
    } else {
      name_ += c;
    }
    return CallStep::more;
  }

  CallStep take_arguments(char c, CallSink& sink) {
    if (!begun_ && is_json_space(c)) return CallStep::more;
    const CallStep step = value_.take(c);
    if (!begun_ && (c != '{' || !sink.begin(name_))) return CallStep::not_a_call;
    begun_ = true;
    if (step == CallStep::not_a_call) return CallStep::last;
    sink.arguments({&c, 1});
    if (step == CallStep::last) sink.end();
    return step;
  }

  State state_ = State::start;
  JsonCall call_;
  JsonValueEnd value_{};
  std::string name_, mark_;
  bool begun_ = false;
};

constexpr std::string_view kBegins[] = {"[TOOL_CALLS]"};

}  // namespace

extern const CallFormat format_mistral;
const CallFormat format_mistral{
    .name = "mistral",
    .detects = [](std::string_view jinja) { return jinja.find("[TOOL_CALLS]") != jinja.npos; },
    .begins = kBegins,
    .id_characters = 9,
    .think = {"[THINK]", "[/THINK]"},
    .reader = []() -> std::unique_ptr<CallReader> { return std::make_unique<Mistral>(); }};

}  // namespace kvasir
