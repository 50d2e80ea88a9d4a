// Calls in JSON, read one character at a time: where a value ends, and {"name": ..., "arguments": ...}.
// Values are not checked further: what a model writes is passed on as it is.
#pragma once

#include <string>

#include "chat/formats/call_format.h"

namespace kvasir {

bool is_json_space(char c);

/// Finds where a JSON value ends. A number or a word ends before the character that is not part of it.
class JsonValueEnd {
 public:
  CallStep take(char c);

 private:
  enum class Kind { none, word, string, container };
  CallStep take_in_string(char c);
  Kind kind_ = Kind::none;
  std::string open_;  // brackets
  bool quoted_ = false, escaped_ = false;
};

/// One object with the name of a tool and its arguments, in any order. Arguments that are an object inside a string are
/// that object. Keys: "name", or "function" as some models write; "arguments" or "parameters".
class JsonCall {
 public:
  /// not_a_call: it is no such object; a call that has begun then ends where it is.
  CallStep take(char c, CallSink& sink);
  bool begun() const { return begun_; }

 private:
  enum class State { before, key_or_end, key, colon, value, comma_or_end };
  CallStep take_value(char c, CallSink& sink);
  CallStep end_value(CallSink& sink);
  CallStep begin(std::string_view name, CallSink& sink);
  CallStep end(CallSink& sink);
  // An object that begins with another one is an answer in JSON.
  bool is_known_key() const {
    return is_arguments() || key_ == "name" || key_ == "function" || key_ == "type" || key_ == "id";
  }
  bool is_arguments() const { return key_ == "arguments" || key_ == "parameters"; }

  State state_ = State::before;
  JsonValueEnd value_{};
  std::string key_, raw_;
  std::string arguments_;  // that came before the name
  bool escaped_ = false, streams_ = false, begun_ = false, has_arguments_ = false;
};

}  // namespace kvasir
