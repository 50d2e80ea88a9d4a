// The formats in which models write tool calls, one per file of this folder. A format lists the texts that begin its
// calls and reads the characters that follow, one at a time. marked_reader.cc finds the calls in an answer.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace kvasir {

/// Receives the calls that a reader finds.
class CallSink {
 public:
  virtual ~CallSink() = default;
  /// Begins a call. Returns false if there is no tool of this name; the text is then not a call.
  virtual bool begin(std::string_view name) = 0;
  /// Appends to the arguments of the begun call.
  virtual void arguments(std::string_view bytes) = 0;
  /// Completes the begun call.
  virtual void end() = 0;
};

/// How a reader classifies a character.
enum class CallStep {
  more,        ///< part of the calls, and more must follow
  last,        ///< the last character of the calls
  after,       ///< the first character after the calls
  not_a_call,  ///< the text so far, including this character, cannot be a call
};

/// Reads the calls after one of CallFormat::begins.
class CallReader {
 public:
  virtual ~CallReader() = default;
  virtual CallStep take(char c, CallSink& sink) = 0;
};

/// The texts that enclose a model's reasoning.
struct ThinkMarks {
  std::string_view begin = "<think>", end = "</think>";
};

struct CallFormat {
  std::string_view name;
  /// Whether a chat template belongs to models that use this format. The first format that matches is used.
  bool (*detects)(std::string_view jinja);
  std::span<const std::string_view> begins = {};  ///< texts that begin calls anywhere in an answer
  bool bare = false;                              ///< an answer that begins with '{' may be a call of a known tool
  bool own_line = false;                          ///< templates write a line break before each call
  bool channels = false;                          ///< the answer consists of messages with channels (channel_reader.cc)
  size_t id_characters = 0;                       ///< required length of call ids; 0 for any
  ThinkMarks think = {};
  std::unique_ptr<CallReader> (*reader)() = nullptr;
};

/// Returns the format of a template; the format "none", which has no calls, if no format matches.
const CallFormat& call_format_of(std::string_view jinja);
/// Returns all formats in the order in which they are tried; "none" is last.
std::span<const CallFormat* const> call_formats();

}  // namespace kvasir
