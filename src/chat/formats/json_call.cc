// The state machines that find the end of a JSON value and read a call in JSON.
#include "chat/formats/json_call.h"

#include <utility>

#include <nlohmann/json.hpp>

namespace kvasir {

bool is_json_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

// ---- where a value ends -------------------------------------------------------------------------------------------

CallStep JsonValueEnd::take_in_string(char c) {
  if (!escaped_ && c == '"') quoted_ = false;
  escaped_ = !escaped_ && c == '\\';
  return CallStep::more;
}

CallStep JsonValueEnd::take(char c) {
  const bool word =
      (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '+' || c == '.';
  if (kind_ == Kind::none) {
    kind_ = c == '"' ? Kind::string : c == '{' || c == '[' ? Kind::container : Kind::word;
    if (kind_ == Kind::word) return word ? CallStep::more : CallStep::not_a_call;
  } else if (kind_ == Kind::word) {
    return word ? CallStep::more : CallStep::after;
  }
  if (quoted_) {
    take_in_string(c);
    return kind_ == Kind::string && !quoted_ ? CallStep::last : CallStep::more;
  }
  if (c == '"') quoted_ = true;
  if (c == '{' || c == '[') open_ += c;
  if (c != '}' && c != ']')
    return word || quoted_ || is_json_space(c) || std::string_view("{[,:").find(c) != std::string_view::npos
               ? CallStep::more
               : CallStep::not_a_call;
  if (open_.empty() || (open_.back() == '{') != (c == '}')) return CallStep::not_a_call;
  open_.pop_back();
  return open_.empty() ? CallStep::last : CallStep::more;
}

// ---- a call -------------------------------------------------------------------------------------------------------

CallStep JsonCall::take(char c, CallSink& sink) {
  if (state_ == State::key) {
    const bool ends = c == '"' && !escaped_;
    escaped_ = !escaped_ && c == '\\';
    if (!ends) {
      key_ += c;
      return CallStep::more;
    }
    state_ = State::colon;
    return begun_ || is_known_key() ? CallStep::more : CallStep::not_a_call;
  }
  if (state_ == State::value) return take_value(c, sink);
  if (is_json_space(c)) return CallStep::more;
  const State was = state_;
  if (was == State::before && c == '{') {
    state_ = State::key_or_end;
  } else if (was == State::key_or_end && c == '"') {
    key_.clear();
    state_ = State::key;
  } else if (was == State::colon && c == ':') {
    raw_.clear();
    value_ = {};
    state_ = State::value;
  } else if (was == State::comma_or_end && c == ',') {
    state_ = State::key_or_end;
  } else if ((was == State::comma_or_end || was == State::key_or_end) && c == '}') {
    return end(sink);
  } else {
    return CallStep::not_a_call;
  }
  return CallStep::more;
}

CallStep JsonCall::take_value(char c, CallSink& sink) {
  if (raw_.empty() && !streams_ && is_json_space(c)) return CallStep::more;
  const CallStep step = value_.take(c);
  if (step == CallStep::not_a_call) return step;
  if (step == CallStep::after) {
    const CallStep ended = end_value(sink);
    return ended == CallStep::more ? take(c, sink) : ended;
  }
  // Once the name is known, arguments are passed on as they arrive.
  if (raw_.empty() && is_arguments() && begun_ && !has_arguments_ && c != '"') streams_ = true;
  if (streams_)
    sink.arguments({&c, 1});
  else
    raw_ += c;
  return step == CallStep::last ? end_value(sink) : CallStep::more;
}

CallStep JsonCall::begin(std::string_view name, CallSink& sink) {
  if (begun_) return CallStep::more;
  if (!sink.begin(name)) return CallStep::not_a_call;
  begun_ = true;
  if (has_arguments_) sink.arguments(arguments_);
  return CallStep::more;
}

CallStep JsonCall::end_value(CallSink& sink) {
  state_ = State::comma_or_end;
  if (std::exchange(streams_, false)) {
    has_arguments_ = true;
    return CallStep::more;
  }
  const bool is_string = raw_.starts_with('"');
  std::string text = raw_;
  if (is_string) {
    const auto json = nlohmann::json::parse(raw_, nullptr, false);
    text = json.is_string() ? json.get<std::string>() : raw_.substr(1, raw_.size() - 2);
  }
  if (is_string && (key_ == "name" || key_ == "function")) return begin(text, sink);
  if (key_ == "function" && raw_.starts_with('{')) {
    if (std::exchange(in_function_, true)) return CallStep::not_a_call;
    CallStep step = CallStep::more;
    state_ = State::before;
    for (const char c : std::exchange(raw_, {}))
      if (step == CallStep::more) step = take(c, sink);
    state_ = State::comma_or_end;
    in_function_ = false;
    return step == CallStep::last ? CallStep::more : CallStep::not_a_call;
  }
  if (!is_arguments() || has_arguments_) return CallStep::more;
  has_arguments_ = true;
  arguments_ = std::move(text);
  if (begun_) sink.arguments(arguments_);
  return CallStep::more;
}

CallStep JsonCall::end(CallSink& sink) {
  if (!begun_) return CallStep::not_a_call;
  if (in_function_) return CallStep::last;  // the object around it ends the call
  if (!std::exchange(has_arguments_, true)) sink.arguments("{}");
  sink.end();
  return CallStep::last;
}

}  // namespace kvasir
