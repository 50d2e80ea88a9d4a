// How a model writes that it calls a tool, one format a file of this folder. A format names the texts that begin its
// calls and reads, character by character, what follows them. Finding them in an answer is marked_reader.cc's.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace kvasir {

/// Takes what a reader finds.
class CallSink {
 public:
  virtual ~CallSink() = default;
  /// False: there is no tool of this name, so it is no call.
  virtual bool begin(std::string_view name) = 0;
  /// More of the begun call's arguments, in the model's own bytes.
  virtual void arguments(std::string_view bytes) = 0;
  /// The begun call is complete.
  virtual void end() = 0;
};

/// What a character was to a reader.
enum class CallStep {
  more,        ///< part of it
  last,        ///< its last one
  after,       ///< the first one that is not part of it
  not_a_call,  ///< the text so far, this character included, cannot be a call
};

/// Reads the calls that follow one text that begins them.
class CallReader {
 public:
  virtual ~CallReader() = default;
  virtual CallStep take(char c, CallSink& sink) = 0;
};

/// Texts between which a model thinks.
struct ThinkMarks {
  std::string_view begin = "<think>", end = "</think>";
};

struct CallFormat {
  std::string_view name;
  /// Whether a chat template is of models that write calls so. The first format that knows a template has it.
  bool (*detects)(std::string_view jinja);
  std::span<const std::string_view> begins = {};  ///< each begins calls, wherever it stands
  bool bare = false;                              ///< an answer that begins with '{' may be a call of a known tool
  bool own_line = false;                          ///< templates write a line's end before each call
  bool channels = false;                          ///< the whole answer is in messages of channels (channel_reader.cc)
  size_t id_characters = 0;                       ///< that ids of calls must have; 0: any number
  ThinkMarks think = {};
  std::unique_ptr<CallReader> (*reader)() = nullptr;
};

/// The format of a template; the one named "none", which has no calls, where none knows it.
const CallFormat& call_format_of(std::string_view jinja);
/// All of them, by name.
std::span<const CallFormat* const> call_formats();

}  // namespace kvasir
