// Runs the stages, each within the pieces of the one before. Source of the rules: huggingface/tokenizers,
// pre_tokenizers ("Isolated").
#include "token/pretokenize.h"

#include <algorithm>

#include "token/byte_map.h"
#include "token/utf8.h"

namespace kvasir {
namespace {

// Calls piece(begin, end) for every match and gap, in order; an empty match splits at its position.
template <class Piece>
Result<void> cut(std::string_view text, RegexMatcher& matcher, const Piece& piece) {
  std::size_t done = 0;
  std::size_t from = 0;
  while (from < text.size()) {
    KVASIR_TRY(const auto match, matcher.next(text, from));
    if (!match) break;
    if (match->begin > done) KVASIR_CHECK(piece(done, match->begin));
    if (match->end > match->begin) KVASIR_CHECK(piece(match->begin, match->end));
    done = match->end;
    from = done;
    if (match->end == match->begin && from < text.size()) from += utf8_step(text.substr(from)).length;
  }
  if (done < text.size()) return piece(done, text.size());
  return {};
}

std::size_t count_chars(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char byte) { return !utf8_is_continuation(byte); }));
}

}  // namespace

Result<PreTokenizer> PreTokenizer::make(const std::vector<CutStage>& stages) {
  PreTokenizer made;
  bool spelled = false;
  for (const CutStage& stage : stages) {
    if (!stage.pattern.empty()) {
      KVASIR_TRY(Regex regex, Regex::compile(stage.pattern));
      made.stages_.push_back({std::move(regex), spelled});
    }
    spelled |= stage.spells_bytes;
  }
  return made;
}

PreTokenizer::Scratch::Scratch(const PreTokenizer& owner) {
  for (const Stage& stage : owner.stages_) matchers_.emplace_back(*stage.regex);
}

Result<void> PreTokenizer::split(std::string_view text, Scratch& scratch, const Sink& sink) const {
  return text.empty() ? Result<void>() : run(0, text, scratch, sink);
}

Result<void> PreTokenizer::run(std::size_t stage, std::string_view text, Scratch& scratch, const Sink& sink) const {
  if (stage == stages_.size()) return sink(text);
  RegexMatcher& matcher = *scratch.matchers_[stage];
  if (!stages_[stage].on_spelling) {
    return cut(text, matcher, [&](std::size_t begin, std::size_t end) {
      return run(stage + 1, text.substr(begin, end - begin), scratch, sink);
    });
  }
  // Each character of the spelling is one byte of the text.
  const std::string spelled = spell_bytes(text);
  std::size_t byte = 0;
  return cut(spelled, matcher, [&](std::size_t begin, std::size_t end) {
    const std::size_t count = count_chars(std::string_view(spelled).substr(begin, end - begin));
    const std::string_view piece = text.substr(byte, count);
    byte += count;
    return run(stage + 1, piece, scratch, sink);
  });
}

}  // namespace kvasir
