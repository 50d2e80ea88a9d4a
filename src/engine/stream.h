// One sequence as it is generated: what to feed next, and what each row of logits adds: a token, text, the receipt.
// Which sequences share a pass is generate.cc's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <kvasir/generate.h>

#include "engine/stop.h"

namespace kvasir {

/// What a generation collects besides ids: text, streamed as it becomes certain.
class TextSink {
 public:
  /// `context` is what the text continues: its last tokens decide about a first space and a character cut in two.
  TextSink(const Model& model, std::span<const int> context, const GenerateOptions& options);
  void push(int id) { emit(decoder_ ? stops_.push(decoder_->push(id)) : std::string()); }
  void finish();
  bool stopped() const { return stops_.stopped(); }
  bool cancelled() const { return cancelled_; }
  const std::string& text() const { return text_; }

 private:
  void emit(const std::string& piece);

  const GenerateOptions& options_;
  std::optional<StreamDecoder> decoder_;
  StopMatcher stops_;
  std::string text_;
  bool cancelled_ = false;
};

class Stream {
 public:
  /// Reuses what there is of a whole text. Requires: session, options and prompt outlive this. Errors: those of
  /// check(); no fingerprint where one is needed.
  static Result<Stream> open(Engine& engine, Session& session, std::span<const int> prompt,
                             const GenerateOptions& options);

  /// Parameters out of range, whatever the prompt is.
  static Result<void> check(const Model& model, const GenerateOptions& options);
  /// A prompt after `held` tokens in a context of `ctx`: one that is empty or does not fit, an id that the model does
  /// not know.
  static Result<void> check(const Model& model, std::span<const int> prompt, size_t held, int ctx);

  /// What to feed: the prompt; then the token chosen last, and guesses at those that follow.
  Feed next();
  /// The rows of logits that next() asked for. Errors: no finite logit, no fingerprint for the receipt.
  Result<void> take(std::span<const float> rows);
  bool done() const { return !g_.stop_reason.empty(); }
  /// Gives its session's memory to others. What next() gave is still what is to be fed.
  void wait();
  /// Another that has been fed the same prompt, in a session that was forked after it.
  Stream forked(Session& session, int choice) const;
  std::span<const int> prompt() const { return prompt_; }
  /// Once it is done.
  Generation finish();

 private:
  Stream(Engine& engine, Session& session, const GenerateOptions& options, int choice);
  Result<void> keep();
  Result<void> begin();
  Result<void> choose(std::span<const float> row, int position);
  void guess();

  Engine* engine_;
  Session* session_;
  std::span<const int> prompt_;  // that is to be fed
  const GenerateOptions* options_;
  int choice_;
  Generation g_;
  std::optional<TextSink> sink_;
  std::optional<Receipt> receipt_;
  std::vector<int> feed_;  // after the prompt: the token chosen last, and guesses
  double start_, prefilled_ = 0, first_ = 0;
};

}  // namespace kvasir
