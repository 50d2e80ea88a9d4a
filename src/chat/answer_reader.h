// Splits an answer into reasoning, text and tool calls. Models write these in two styles: between marks
// (marked_reader.cc) or in channels (channel_reader.cc).
#pragma once

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <kvasir/chat.h>

#include "chat/formats/call_format.h"

namespace kvasir {

/// Collects the parts that a reader finds. Consecutive parts of one kind are merged.
class PartList : public CallSink {
 public:
  explicit PartList(AnswerOptions options) : o_(std::move(options)) {}

  void add(AnswerPart::Kind kind, std::string_view text);
  bool begin(std::string_view name) override;
  void arguments(std::string_view bytes) override;
  void end() override { ++ended_; }
  /// Sets whether later calls must name a tool of AnswerOptions::tools.
  void only_known(bool only) { only_known_ = only; }

  bool reads_calls() const { return !o_.tools.empty(); }
  int begun() const { return begun_; }
  int ended() const { return ended_; }
  std::vector<AnswerPart> take() { return std::exchange(parts_, {}); }

 private:
  bool is_dropped() const { return o_.one_call && begun_ > 1; }

  AnswerOptions o_;
  std::vector<AnswerPart> parts_;
  int begun_ = 0, ended_ = 0;
  bool only_known_ = false;
};

class AnswerReader {
 public:
  virtual ~AnswerReader() = default;
  virtual void take(char c) = 0;
  /// Ends the answer: characters that were held back are assigned to a part.
  virtual void finish() = 0;
  virtual bool reasons() const = 0;
};

/// Reads reasoning between two marks at the start of the answer, then text in which marks begin calls. `in_reasoning`:
/// the prompt ends with the opening mark of the reasoning.
std::unique_ptr<AnswerReader> marked_reader(const CallFormat& format, PartList& out, bool in_reasoning);
/// Reads messages with channels: channel "analysis" is reasoning, a message to "functions.NAME" is a call.
std::unique_ptr<AnswerReader> channel_reader(PartList& out);

}  // namespace kvasir
