// Reads calls in JSON one character at a time: the end of a value, and {"name": ..., "arguments": ...}. Values are not
// validated further; the bytes that a model writes are passed on unchanged.
#pragma once

#include <string>

#include "chat/formats/call_format.h"

namespace kvasir {

bool is_json_space(char c);

/// Finds the end of a JSON value. Only the character after a number or a word shows that it has ended
/// (CallStep::after).
class JsonValueEnd {
 public:
  CallStep take(char c);

 private:
  enum class Kind { none, word, string, container };
  CallStep take_in_string(char c);
  Kind kind_ = Kind::none;
  std::string open_;  // open brackets
  bool quoted_ = false, escaped_ = false;
};

/// Reads one object with the name of a tool and its arguments, in any order. Arguments given as a string of JSON are
/// decoded. Keys: "name", or "function" as some models write; "arguments" or "parameters".
class JsonCall {
 public:
  /// Returns not_a_call if the text is not such an object. A call that has begun then ends incomplete.
  CallStep take(char c, CallSink& sink);
  bool begun() const { return begun_; }

 private:
  enum class State { before, key_or_end, key, colon, value, comma_or_end };
  CallStep take_value(char c, CallSink& sink);
  CallStep end_value(CallSink& sink);
  CallStep begin(std::string_view name, CallSink& sink);
  CallStep end(CallSink& sink);
  // An object whose first key is none of these is an answer in JSON, not a call.
  bool is_known_key() const {
    return is_arguments() || key_ == "name" || key_ == "function" || key_ == "type" || key_ == "id";
  }
  bool is_arguments() const { return key_ == "arguments" || key_ == "parameters"; }

  State state_ = State::before;
  JsonValueEnd value_{};
  std::string key_, raw_;
  std::string arguments_;  // complete arguments, kept until the name is known
  bool escaped_ = false, streams_ = false, begun_ = false, has_arguments_ = false;
  bool in_function_ = false;  ///< within the object of "function": {"name": ..., "arguments": ...}
};

}  // namespace kvasir
