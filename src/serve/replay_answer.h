// What a client learns from a streamed completion of any OpenAI-compatible server. No sockets and no clock here.
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

  /// The tokens that these bytes bring. Errors: what is no such stream (damaged); an error that the server tells (io).
  Result<std::vector<Tokens>> read(std::string_view bytes);

  /// The server said that this was all.
  bool is_done() const { return done_; }
  /// Every choice has its end: enough for a stream that just ends.
  bool is_complete() const;
  const std::optional<Usage>& usage() const { return usage_; }
  /// Of all choices; by the usage where it was told.
  int generated() const;
  /// The ids of choice 0, or, where the server tells none, how many they are.
  const std::vector<int>& ids() const { return ids_; }
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

/// A member that is there and not null; else a null pointer.
const Json* member(const Json& object, const char* key);
/// A member that is a whole number from 0 to 2^30.
std::optional<int> count_in(const Json& object, const char* key);
/// The message of a body {"error": {"message": ...}}, or the body's beginning.
std::string told_error(std::string_view body);

}  // namespace kvasir::serve
