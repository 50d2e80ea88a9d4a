// From a tokenizer to GGUF's arrays. Refuses by name whatever GGUF cannot express, so that the file's ids equal the
// tokenizer's.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "token/byte_level.h"
#include "token/exceptions_to_errors.h"
#include "token/files/gguf_pre.h"
#include "token/files/gguf_vocab.h"
#include "token/safe_cuts.h"
#include "token/spm.h"
#include "token/utf8.h"

namespace kvasir {
namespace {

std::int32_t stored_type(PieceKind kind) {
  switch (kind) {
    case PieceKind::kNormal:
      return GgufPiece::kNormal;
    case PieceKind::kUnknown:
      return GgufPiece::kUnknown;
    case PieceKind::kControl:
      return GgufPiece::kControl;
    case PieceKind::kUserDefined:
      return GgufPiece::kUserDefined;
    case PieceKind::kUnused:
      return GgufPiece::kUnused;
    case PieceKind::kByte:
      return GgufPiece::kByte;
  }
  return GgufPiece::kNormal;
}

tl::unexpected<Error> no_place(const std::string& what) {
  return fail(Error::unsupported, "GGUF has no place for a tokenizer " + what);
}

// ---- added tokens that meet in a text -----------------------------------------------------------------------------

using Contents = std::vector<std::pair<std::string_view, const AddedToken*>>;

// Calls check(other, text) for every token that begins inside this one and ends after it; `text` is the two overlapped.
template <class Check>
Result<void> each_overlap(const Contents& sorted, std::string_view content, const Check& check) {
  for (std::size_t at = 1; at < content.size(); ++at) {
    const std::string_view tail = content.substr(at);
    for (auto it = std::lower_bound(sorted.begin(), sorted.end(), Contents::value_type(tail, nullptr));
         it != sorted.end() && it->first.starts_with(tail); ++it)
      if (it->first.size() > tail.size())
        KVASIR_CHECK(check(*it->second, std::string(content.substr(0, at)) + std::string(it->first)));
  }
  return {};
}

// Refuses overlapping tokens that readers would match differently. A tokenizer matches its tokens from the left,
// normalised ones after the others. For GGUF, Kvasir matches from the left, llama.cpp the longest first.
Result<void> check_overlaps(const std::vector<AddedToken>& added) {
  Contents sorted;
  AddedTokenFinder finder;
  for (const AddedToken& token : added) {
    sorted.emplace_back(token.content, &token);
    finder.add({.content = {}, .id = token.id}, token.content);
  }
  std::sort(sorted.begin(), sorted.end());
  for (const AddedToken& first : added) {
    const auto meet = [&](const AddedToken& other, const std::string& text) -> Result<void> {
      if (other.id == first.id) return {};
      const bool other_wins = first.normalized && !other.normalized;
      const bool longer = other.content.size() >= first.content.size();
      if (!other_wins && !(longer && finder.longest_at(text, 0)->id == first.id)) return {};
      return no_place(fmt::format("whose added tokens {} and {} meet in {}", quote(first.content), quote(other.content),
                                  quote(text)));
    };
    KVASIR_CHECK(each_overlap(sorted, first.content, meet));
    if (!first.normalized) continue;
    for (const AddedToken& other : added)
      if (!other.normalized && first.content.find(other.content) != std::string::npos && other.id != first.id)
        return no_place(fmt::format("whose added token {} holds {}", quote(first.content), quote(other.content)));
  }
  return {};
}

// ---- the two kinds of tokenizer -----------------------------------------------------------------------------------

// Returns, as text, a flag of the token that GGUF's readers do not honour; null if there is none.
const char* flag_without_a_place(const AddedToken& token, bool readers_strip, bool normalizes) {
  if (token.lstrip || (token.rstrip && !readers_strip)) return "swallows white space";
  if (readers_strip && !token.rstrip) return "leaves white space that readers of GGUF let it swallow";
  if (token.single_word) return "is only found where it stands alone";
  return token.normalized && normalizes ? "is looked for in the normalised text" : nullptr;
}

class Writer {
 public:
  Writer(const BpeTables& tables, int tokens, const RstripBut& rstrip_but) : tables_(tables), tokens_(tokens) {
    vocab().rstrip_but = rstrip_but;
  }

  // Fills what both kinds have. `spelling` returns a piece as the file spells it.
  template <class Spelling>
  Result<void> common(const Spelling& spelling) {
    KVASIR_CHECK(check_rows());
    for (int id = 0; id < tokens_; ++id) {
      const bool there = tables_.vocabulary.has(id);
      vocab().tokens.push_back(own(there ? spelling(tables_.vocabulary.piece(id)) : padding(id)));
      vocab().types.push_back(there ? GgufPiece::kNormal : GgufPiece::kUnused);
    }
    vocab().unk = tables_.unk;
    if (tables_.prefix.size() > 1) return no_place(fmt::format("that puts {} tokens first", tables_.prefix.size()));
    vocab().add_bos = !tables_.prefix.empty();
    if (*vocab().add_bos) vocab().bos = tables_.prefix.front();
    return {};
  }

  // `strips`: whether a reader lets this token swallow the white space after it.
  template <class Strips>
  Result<void> added_tokens(bool normalizes, const Strips& strips) {
    KVASIR_CHECK(check_overlaps(tables_.added));
    for (const AddedToken& token : tables_.added) {
      const char* flag = flag_without_a_place(token, strips(token), normalizes);
      if (flag != nullptr) return no_place(fmt::format("whose added token {} {}", quote(token.content), flag));
      std::int32_t& type = vocab().types[static_cast<std::size_t>(token.id)];
      if (type == GgufPiece::kNormal) type = token.special ? GgufPiece::kControl : GgufPiece::kUserDefined;
      if (type == GgufPiece::kUnused || type == GgufPiece::kByte)
        return no_place(fmt::format("that looks for its unused or byte piece {} in a text", quote(token.content)));
    }
    return {};
  }

  std::string_view own(std::string text) { return out_.texts.emplace_back(std::move(text)); }
  GgufVocab& vocab() { return out_.vocab; }
  OwnedGgufVocab take() { return std::move(out_); }

 private:
  Result<void> check_rows() const {
    if (tables_.vocabulary.size() <= tokens_) return {};
    int id = tokens_;
    while (!tables_.vocabulary.has(id)) ++id;
    return no_place(fmt::format("of {} tokens for a model of {}: token {} ({}) has no row of weights",
                                tables_.vocabulary.size(), tokens_, id, quote(tables_.vocabulary.piece(id))));
  }

  // Returns llama.cpp's name for an id without a piece, made unique if a piece has that name.
  std::string padding(int id) const {
    std::string name = fmt::format("[PAD{}]", id);
    while (tables_.vocabulary.find(name)) name += ']';
    return name;
  }

  const BpeTables& tables_;
  const int tokens_;
  OwnedGgufVocab out_;
};

Result<OwnedGgufVocab> from_byte_level(const ByteLevelTables& tables, int tokens, const RstripBut& rstrip_but) {
  Writer out(tables, tokens, rstrip_but);
  out.vocab().model = kGgufByteLevel;
  out.vocab().pre = find_pre_name(tables);
  if (out.vocab().pre.empty()) return no_place("that cuts its texts like this one");
  if (tables.leading_space) return no_place("that puts a space before each text");
  if (tables.fuse_unk && tables.unk) return no_place("that writes several unknown characters as one");
  KVASIR_CHECK(out.common([](std::string_view piece) { return std::string(piece); }));
  KVASIR_CHECK(out.added_tokens(tables.nfc, [](const AddedToken&) { return false; }));
  for (const auto& [left, right] : tables.merges.ranked()) {
    const std::string_view a = tables.vocabulary.piece(left), b = tables.vocabulary.piece(right);
    if (a.find(' ', 1) != a.npos) return no_place(fmt::format("with a merge of {}, which has a space", quote(a)));
    out.vocab().merges.push_back(out.own(fmt::format("{} {}", a, b)));
  }
  return out.take();
}

std::string mark_spaces(std::string_view piece) {
  std::string out;
  for (const char c : piece) c == ' ' ? out.append(kSpaceMark) : out.append(1, c);
  return out;
}

Result<void> check_spm(const SpmTables& tables) {
  if (tables.scores.empty()) return no_place("of SentencePiece's kind that merges by rank and not by score");
  if (tables.space_before != SpaceBefore::kNever && tables.space_before != SpaceBefore::kEvery)
    return no_place("that puts a space only where none is");
  if (tables.cuts_at_spaces) return no_place("of SentencePiece's kind that cuts at spaces");
  if (!tables.byte_fallback || !tables.fuse_unk) return no_place("of SentencePiece's kind without bytes");
  return {};
}

// True if a reader that merges by score could make this piece: it splits into two characters or pieces.
bool could_be_merged(const Vocabulary& vocabulary, std::string_view piece) {
  const auto is_symbol = [&](std::string_view part) {
    return Seams::first(part).length == part.size() || vocabulary.find(part).has_value();
  };
  for (std::size_t at = Seams::first(piece).length; at < piece.size(); at += Seams::first(piece.substr(at)).length)
    if (is_symbol(piece.substr(0, at)) && is_symbol(piece.substr(at))) return true;
  return false;
}

// Refuses a piece that merging never makes here but would make in a reader that merges every piece of the file, as
// llama.cpp does. Exempt: an added token without kSpaceMark, which is matched in the text before merging.
Result<void> check_merges(const SpmTables& tables, int id, bool found) {
  const auto slot = static_cast<std::size_t>(id);
  const std::string_view piece = tables.vocabulary.piece(id);
  const PieceKind kind = tables.kinds[slot];
  const bool found_first = found && piece.find(kSpaceMark) == piece.npos;
  const bool merged_here = kind == PieceKind::kNormal || kind == PieceKind::kUserDefined;
  if (found_first || (merged_here && tables.scores[slot] > tables.floor)) return {};
  if (!could_be_merged(tables.vocabulary, piece)) return {};
  return no_place(fmt::format("whose piece {} ({}) is never merged", id, quote(piece)));
}

// Returns the type to write. Readers match unknown, control and user-defined pieces in a text before any other step.
// llama2.c's tokenizer.bin never matches them, so they are written as unused. Alone, a .model with such pieces is
// refused: the folder that it belongs to reads it differently.
Result<std::int32_t> type_for_readers(const SpmTables& tables, int id, bool found) {
  const PieceKind kind = tables.kinds[static_cast<std::size_t>(id)];
  const bool looked_for = kind == PieceKind::kUnknown || kind == PieceKind::kControl || kind == PieceKind::kUserDefined;
  if (!looked_for || found) return stored_type(kind);
  if (!tables.marks_spaces && kind != PieceKind::kUserDefined) return GgufPiece::kUnused;
  return no_place(
      fmt::format("that does not look for its piece {} ({}) in a text", id, quote(tables.vocabulary.piece(id))));
}

Result<OwnedGgufVocab> from_spm(const SpmTables& tables, int tokens, const RstripBut& rstrip_but) {
  constexpr float kPadScore = -1000;
  KVASIR_CHECK(check_spm(tables));
  Writer out(tables, tokens, rstrip_but);
  out.vocab().model = kGgufSentencePiece;
  out.vocab().pre = "default";
  KVASIR_CHECK(out.common(
      [&](std::string_view piece) { return tables.marks_spaces ? std::string(piece) : mark_spaces(piece); }));
  out.vocab().scores.assign(static_cast<std::size_t>(tokens), kPadScore);
  std::vector<bool> found(static_cast<std::size_t>(tables.vocabulary.size()));
  for (const AddedToken& token : tables.added) found[static_cast<std::size_t>(token.id)] = true;
  for (int id = 0; id < tables.vocabulary.size(); ++id) {
    const auto slot = static_cast<std::size_t>(id);
    if (!tables.vocabulary.has(id)) continue;
    if (std::isfinite(tables.scores[slot])) out.vocab().scores[slot] = tables.scores[slot];
    KVASIR_TRY(out.vocab().types[slot], type_for_readers(tables, id, found[slot]));
    KVASIR_CHECK(check_merges(tables, id, found[slot]));
  }
  KVASIR_CHECK(
      out.added_tokens(false, [&](const AddedToken& token) { return swallows_space(rstrip_but, token.content); }));
  out.vocab().add_space_prefix = tables.space_before == SpaceBefore::kEvery;
  return out.take();
}

}  // namespace

Result<OwnedGgufVocab> gguf_vocab_of(const TokenModel& model, int tokens, const RstripBut& rstrip_but) {
  return guarded([&]() -> Result<OwnedGgufVocab> {
    if (const auto* bytes = dynamic_cast<const ByteLevelModel*>(&model))
      return from_byte_level(bytes->tables(), tokens, rstrip_but);
    if (const auto* spm = dynamic_cast<const SpmModel*>(&model)) return from_spm(spm->tables(), tokens, rstrip_but);
    return no_place("of this kind");
  });
}

}  // namespace kvasir
