// Generated ids as text: decoded, and ended by the first stop string. Text is released once no stop string can begin in
// it any more.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <kvasir/model.h>

#include "engine/stop.h"

namespace kvasir {

class TextSink {
 public:
  /// `context`: the tokens before. The last of them decide about a first space and complete a split character.
  TextSink(const Model& model, std::span<const int> context, std::vector<std::string> stops, bool includes_stop)
      : stops_(std::move(stops), includes_stop) {
    if (model.tokenizer() == nullptr) return;
    decoder_.emplace(model.tokenizer());
    for (const int id : context.last(std::min<size_t>(4, context.size()))) (void)decoder_->push(id);
  }

  void push(int id) {
    if (decoder_) add(stops_.push(decoder_->push(id)));
  }
  /// Ends the sequence: releases the text held back.
  void finish() {
    if (decoder_) add(stops_.push(decoder_->finish()));
    add(stops_.finish());
  }
  bool stopped() const { return stops_.stopped(); }
  const std::string& stop_text() const { return stops_.match(); }
  /// All text so far.
  const std::string& text() const { return text_; }
  /// The text since the last call.
  std::string news() { return text_.substr(std::exchange(told_, text_.size())); }

 private:
  void add(const std::string& piece) { text_ += piece; }

  std::optional<StreamDecoder> decoder_;
  StopMatcher stops_;
  std::string text_;
  size_t told_ = 0;
};

}  // namespace kvasir
