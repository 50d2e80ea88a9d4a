// Parses a streamed completion of any OpenAI-compatible server. No sockets and no clock here.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/http/event_stream.h"
#include "serve/json.h"

namespace kvasir::serve {

class StreamedAnswer {
 public:
  struct Tokens {
    int choice = 0, count = 0;
  };
  struct Usage {
    int prompt = 0, completion = 0;
    std::optional<int> cached = {};
  };

  explicit StreamedAnswer(int choices) : tokens_(static_cast<size_t>(choices)), ended_(tokens_.size()) {}

  /// Returns the tokens in these bytes. Errors: not a stream of completions (damaged); the server reports an error
  /// (io).
  Result<std::vector<Tokens>> read(std::string_view bytes);

  /// Whether the server has sent [DONE].
  bool is_done() const { return done_; }
  /// Whether the stream is done or every choice has ended, for servers that do not send [DONE].
  bool is_complete() const;
  const std::optional<Usage>& usage() const { return usage_; }
  /// Number of tokens of all choices, from the usage if the server reported it.
  int generated() const;
  /// The ids of choice 0; empty if the server does not report them.
  const std::vector<int>& ids() const { return ids_; }
  /// Number of tokens of choice 0.
  int answer_tokens() const;

 private:
  Result<void> take(std::string_view data, std::vector<Tokens>* news);
  Result<void> take_choice(const Json& choice, std::vector<Tokens>* news);
  void take_usage(const Json& usage);

  EventReader events_;
  std::vector<int> tokens_;  // [choices]
  std::vector<bool> ended_;  // [choices]
  std::vector<int> ids_;
  std::optional<Usage> usage_;
  bool done_ = false;
};

/// Returns a member; a null pointer if it is absent or null.
const Json* member(const Json& object, const char* key);
/// Returns a member that is a whole number from 0 to 2^30; null otherwise.
std::optional<int> count_in(const Json& object, const char* key);
/// Returns the message of a body {"error": {"message": ...}}, or the first 200 bytes of another body.
std::string told_error(std::string_view body);

}  // namespace kvasir::serve
