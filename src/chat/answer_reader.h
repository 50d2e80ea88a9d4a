// Answers taken apart: reasoning, text, calls of tools. Models write them in two ways, and each has a reader.
#pragma once

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <kvasir/chat.h>

#include "chat/formats/call_format.h"

namespace kvasir {

/// Where a reader puts what it finds; parts of one kind that follow each other are one.
class PartList : public CallSink {
 public:
  explicit PartList(AnswerOptions options) : o_(std::move(options)) {}

  void add(AnswerPart::Kind kind, std::string_view text);
  bool begin(std::string_view name) override;
  void arguments(std::string_view bytes) override;
  void end() override { ++ended_; }
  /// Whether a call needs the name of a given tool from now on.
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
  /// Nothing follows: what was held is decided.
  virtual void finish() = 0;
  virtual bool reasons() const = 0;
};

/// Reasoning between two marks at the answer's start, then text in which calls begin at marks. `in_reasoning`: the
/// prompt has begun it.
std::unique_ptr<AnswerReader> marked_reader(const CallFormat& format, PartList& out, bool in_reasoning);
/// Messages of channels: "analysis" is reasoning, one to "functions.NAME" is a call.
std::unique_ptr<AnswerReader> channel_reader(PartList& out);

}  // namespace kvasir
