// Splits text into the words within which BPE merges. files/tokenizer_byte_json.h and files/gguf_pre.h choose the
// stages.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <kvasir/result.h>

#include "token/regex.h"

namespace kvasir {

/// GPT-2's own pattern. Source: openai/gpt-2 src/encoder.py.
inline constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

/// One stage of splitting: every match of the pattern is a piece, and so is every gap between matches. An empty pattern
/// splits nothing. Stages after the one that spells bytes see GPT-2's spelling of the bytes instead of the text.
struct CutStage {
  std::string pattern;
  bool spells_bytes = false;
};

/// Immutable and thread-safe.
class PreTokenizer {
 public:
  /// Receives every word in order, as a view into the text.
  using Sink = std::function<Result<void>(std::string_view)>;

  /// Fails on a pattern that does not compile.
  static Result<PreTokenizer> make(const std::vector<CutStage>& stages);

  /// The patterns' working memory; one per call of encode.
  class Scratch {
   public:
    explicit Scratch(const PreTokenizer& owner);

   private:
    friend class PreTokenizer;
    std::vector<std::optional<RegexMatcher>> matchers_;
  };

  /// Calls `sink` with each word; the words concatenated are the text. Requires: valid UTF-8. Fails if `sink` or a
  /// pattern fails.
  Result<void> split(std::string_view text, Scratch& scratch, const Sink& sink) const;

 private:
  struct Stage {
    std::optional<Regex> regex;
    bool on_spelling = false;
  };
  Result<void> run(std::size_t stage, std::string_view text, Scratch& scratch, const Sink& sink) const;

  std::vector<Stage> stages_;
};

}  // namespace kvasir
