// Cutting text into the words within which BPE merges. Which stages a file asks for is read in tokenizer_parts.h.
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

/// One cut: every match of the pattern is a piece, and so is everything between two matches. Without a pattern nothing
/// is cut. After the stage that spells bytes, later stages see GPT-2's spelling of the bytes instead of the text.
struct CutStage {
  std::string pattern;
  bool spells_bytes = false;
};

/// Immutable and thread-safe.
class PreTokenizer {
 public:
  /// The sink gets every word in order, as a view into the text.
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

  /// Requires: valid UTF-8. Nothing is lost: the words put together are the text. Fails as the sink or a pattern does.
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
