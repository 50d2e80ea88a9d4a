// From a tokenizer to GGUF's arrays. What GGUF has no place for is refused by name, so that the file's ids are the
// tokenizer's own.
#include <algorithm>

#include <fmt/format.h>

#include "token/byte_level.h"
#include "token/gguf_vocab.h"
#include "token/guarded.h"
#include "token/spm.h"
#include "token/utf8.h"

namespace kvasir {
namespace {

enum Type : std::int32_t { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };

std::int32_t type_of(PieceKind kind) {
  switch (kind) {
    case PieceKind::kNormal:
      return kNormal;
    case PieceKind::kUnknown:
      return kUnknown;
    case PieceKind::kControl:
      return kControl;
    case PieceKind::kUserDefined:
      return kUserDefined;
    case PieceKind::kUnused:
      return kUnused;
    case PieceKind::kByte:
      return kByte;
  }
  return kNormal;
}

tl::unexpected<Error> no_place(const std::string& what) { return fail("GGUF has no place for a tokenizer " + what); }

class Writer {
 public:
  Writer(const BpeParts& parts, int tokens) : parts_(parts), tokens_(tokens) {}

  // What both kinds have. `spelling` gives a piece as the file has it.
  template <class Spelling>
  Result<void> common(const Spelling& spelling) {
    if (parts_.vocabulary.size() > tokens_)
      return fail(fmt::format("a tokenizer of {} tokens for a model of {}", parts_.vocabulary.size(), tokens_));
    for (int id = 0; id < tokens_; ++id) {
      const bool there = parts_.vocabulary.has(id);
      vocab().tokens.push_back(own(there ? spelling(parts_.vocabulary.piece(id)) : fmt::format("[PAD{}]", id)));
      vocab().types.push_back(there ? kNormal : kUnused);
    }
    vocab().unk = parts_.unk;
    if (parts_.prefix.size() > 1) return no_place(fmt::format("that puts {} tokens first", parts_.prefix.size()));
    vocab().add_bos = !parts_.prefix.empty();
    if (*vocab().add_bos) vocab().bos = parts_.prefix.front();
    return {};
  }

  Result<void> added_tokens(bool normalizes) {
    for (const AddedToken& token : parts_.added) {
      if (token.lstrip || token.rstrip || token.single_word || (token.normalized && normalizes))
        return no_place(fmt::format("whose added token {} swallows white space, stands alone or is normalised",
                                    quote(token.content)));
      std::int32_t& type = vocab().types[static_cast<std::size_t>(token.id)];
      if (type == kNormal) type = token.special ? kControl : kUserDefined;
    }
    return {};
  }

  std::string_view own(std::string text) { return out_.texts.emplace_back(std::move(text)); }
  GgufVocab& vocab() { return out_.vocab; }
  OwnedGgufVocab take() { return std::move(out_); }

 private:
  const BpeParts& parts_;
  const int tokens_;
  OwnedGgufVocab out_;
};

Result<OwnedGgufVocab> from_byte_level(const ByteLevelParts& parts, int tokens) {
  Writer out(parts, tokens);
  out.vocab().model = "gpt2";
  out.vocab().pre = find_pre_name(parts);
  if (out.vocab().pre.empty()) return no_place("that cuts its texts like this one");
  if (parts.leading_space) return no_place("that puts a space before each text");
  if (parts.fuse_unk && parts.unk) return no_place("that writes several unknown characters as one");
  KVASIR_CHECK(out.common([](std::string_view piece) { return std::string(piece); }));
  KVASIR_CHECK(out.added_tokens(parts.nfc));
  for (const auto& [left, right] : parts.merges.ranked()) {
    const std::string_view a = parts.vocabulary.piece(left), b = parts.vocabulary.piece(right);
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

Result<void> check_spm(const SpmParts& parts) {
  if (parts.scores.empty()) return no_place("of SentencePiece's kind that merges by rank and not by score");
  if (parts.space_before != SpaceBefore::kNever && parts.space_before != SpaceBefore::kEvery)
    return no_place("that puts a space only where none is");
  if (parts.cuts_at_spaces) return no_place("of SentencePiece's kind that cuts at spaces");
  if (!parts.byte_fallback || !parts.fuse_unk) return no_place("of SentencePiece's kind without bytes");
  return {};
}

Result<OwnedGgufVocab> from_spm(const SpmParts& parts, int tokens) {
  constexpr float kPadScore = -1000;
  KVASIR_CHECK(check_spm(parts));
  Writer out(parts, tokens);
  out.vocab().model = "llama";
  out.vocab().pre = "default";
  KVASIR_CHECK(
      out.common([&](std::string_view piece) { return parts.marks_spaces ? std::string(piece) : mark_spaces(piece); }));
  out.vocab().scores.assign(static_cast<std::size_t>(tokens), kPadScore);
  for (std::size_t id = 0; id < parts.scores.size(); ++id) {
    out.vocab().scores[id] = parts.scores[id];
    if (parts.vocabulary.has(static_cast<int>(id))) out.vocab().types[id] = type_of(parts.kinds[id]);
    const bool never = parts.kinds[id] == PieceKind::kNormal && parts.scores[id] <= parts.floor;
    if (never) return no_place(fmt::format("whose piece {} is never merged", id));
  }
  KVASIR_CHECK(out.added_tokens(false));
  out.vocab().add_space_prefix = parts.space_before == SpaceBefore::kEvery;
  return out.take();
}

}  // namespace

Result<OwnedGgufVocab> gguf_vocab_of(const TokenModel& model, int tokens) {
  return guarded([&]() -> Result<OwnedGgufVocab> {
    if (const auto* bytes = dynamic_cast<const ByteLevelModel*>(&model)) return from_byte_level(bytes->parts(), tokens);
    if (const auto* spm = dynamic_cast<const SpmModel*>(&model)) return from_spm(spm->parts(), tokens);
    return no_place("of this kind");
  });
}

}  // namespace kvasir
