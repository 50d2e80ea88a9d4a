// Makes tokenizers from the metadata `tokenizer.ggml.*` of a GGUF file, and the metadata from tokenizers. src/format
// reads and writes the file.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <kvasir/result.h>

#include "token/model.h"

namespace kvasir {

/// The kinds of tokenizer, as `tokenizer.ggml.model` names them. Gemma's merges by rank over the unsplit text, spells a
/// space as U+2581 and falls back to bytes for a character without a piece; `gguf_vocab_of` does not write it.
inline constexpr std::string_view kGgufSentencePiece = "llama", kGgufByteLevel = "gpt2", kGgufGemma = "gemma4";

/// The values of `tokenizer.ggml.token_type`.
struct GgufPiece {
  enum : std::int32_t { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };
};

/// Added tokens of a SentencePiece vocabulary swallow the white space after them, except these. Absent: none does.
using RstripBut = std::optional<std::span<const std::string_view>>;

/// The values of `tokenizer.ggml.<name>`; a comment has the key's name where it differs. An absent array is empty. The
/// views must stay valid only during the call that takes them.
struct GgufVocab {
  RstripBut rstrip_but;  ///< follows from the architecture; there is no key
  std::string model;     ///< one of the kinds above; others are refused by name
  std::string pre;
  std::vector<std::string_view> tokens;
  std::vector<std::string_view> merges;  ///< "left right", best first; SentencePiece: none
  std::vector<float> scores;             ///< SentencePiece
  std::vector<std::int32_t> types;       ///< token_type, of GgufPiece
  std::optional<int> bos;                ///< bos_token_id
  std::optional<int> eos;                ///< eos_token_id
  std::optional<int> eot;                ///< eot_token_id
  std::optional<int> unk;                ///< unknown_token_id
  std::optional<bool> add_bos;           ///< add_bos_token; Gemma: BOS is put first even if it is false
  std::optional<bool> add_space_prefix;  ///< SentencePiece
};

/// A vocabulary with the texts that its views point to.
struct OwnedGgufVocab {
  GgufVocab vocab;
  std::deque<std::string> texts;
};

/// The inverse: returns the values of a GGUF file for `model`, in a language model of `tokens` tokens. Ids without a
/// piece are padded with unused tokens, as llama.cpp's converter does. The caller sets `eos` and `eot`. Errors, naming
/// the difference: a tokenizer that GGUF cannot describe, or one for which Kvasir and llama.cpp would return different
/// ids.
Result<OwnedGgufVocab> gguf_vocab_of(const TokenModel& model, int tokens, const RstripBut& rstrip_but);

/// True if the added token `token` swallows the white space after it.
bool swallows_space(const RstripBut& but, std::string_view token);

/// Unknown, control and user-defined tokens are matched in a text; the first two are special. Fails on an unknown
/// `model` or `pre`, arrays of different lengths, ids outside the vocabulary and scores that are not finite.
Result<std::unique_ptr<const TokenModel>> make_gguf_tokenizer(const GgufVocab& vocab);

}  // namespace kvasir
