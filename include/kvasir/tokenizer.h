// Text to token ids and back: byte-level BPE and SentencePiece-style BPE, from Hugging Face's tokenizer.json,
// SentencePiece's .model, a folder with one of the two, and llama2.c's tokenizer.bin. For GGUF files and models by name
// see open_tokenizer() in model.h; chat templates are in chat.h.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <kvasir/result.h>
#include <kvasir/version.h>

namespace kvasir {

/// A part of a model's files that Kvasir does not use, and why.
struct Ignored {
  std::string name;    ///< a tensor, or a key with its file: "config.json: use_cache"
  std::string why;     ///< "vision tower", "training only", "not known to Kvasir"
  bool noted = false;  ///< worth telling the user when the model is opened
};

/// One line for a user with the noted parts, grouped by reason: "not used: vision_tower.a and 311 more (vision tower)";
/// empty if none is noted.
KVASIR_API std::string note_of(std::span<const Ignored> ignored);

/// A part of a text: bytes [begin, end).
struct TextSpan {
  std::size_t begin = 0, end = 0;
  bool operator==(const TextSpan&) const = default;
};

/// An immutable tokenizer. Every method is const and may be called from many threads at once.
class KVASIR_API Tokenizer {
 public:
  /// Reads a Hugging Face `tokenizer.json` with a BPE model, byte-level (GPT-2, Llama 3, Qwen) or with U+2581 for a
  /// space and byte fallback (Llama 2, Mistral, Phi-3). Errors: not_found; damaged; unsupported, a normalizer,
  /// pre-tokenizer, decoder, post-processor, model or flag that would change ids and is not understood; the message
  /// names it.
  static Result<std::shared_ptr<const Tokenizer>> from_json(const std::filesystem::path& tokenizer_json);

  /// Reads llama2.c's `tokenizer.bin`, which does not contain its number of tokens; the model file does. Errors:
  /// not_found; damaged, the file has fewer or more tokens than `vocab_size`. Source: karpathy/llama2.c run.c,
  /// `build_tokenizer` and `encode`.
  static Result<std::shared_ptr<const Tokenizer>> from_llama2c(const std::filesystem::path& tokenizer_bin,
                                                               int vocab_size);

  /// Reads a SentencePiece `.model` of type BPE. Its control pieces are not recognised in a text, its user-defined ones
  /// are. Errors: not_found; damaged; unsupported, with its name: a unigram, word or character model, a
  /// precompiled_charsmap, treat_whitespace_as_suffix, remove_extra_whitespaces.
  static Result<std::shared_ptr<const Tokenizer>> from_sentencepiece(const std::filesystem::path& model);

  /// Reads the tokenizer of a Hugging Face folder: its `tokenizer.json`, else its `tokenizer.model`, together with
  /// `tokenizer_config.json`, `added_tokens.json` and `special_tokens_map.json`. Here the unknown, control and
  /// user-defined pieces of a `.model` are recognised in a text, as those of a GGUF file are. Errors: as above; a
  /// setting that contradicts the tokenizer, or would change ids and is not understood, with its name.
  static Result<std::shared_ptr<const Tokenizer>> from_folder(const std::filesystem::path& folder);

  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  /// The ids of `text`, at most 1 GiB. Added tokens (mostly special ones) that a tokenizer.json or a GGUF file names
  /// are recognised in the text. With `add_bos` the file's beginning-of-text token comes first, exactly once, even if
  /// the text already starts with it; if the file names none, none is added. Each byte that is not UTF-8 becomes its
  /// own byte token. A byte (in a vocabulary of characters: a character) without a token becomes the unknown token; if
  /// the file names none, that is an error with the byte and its offset.
  Result<std::vector<int>> encode(std::string_view text, bool add_bos = true) const;

  /// As above, but added tokens are not recognised in the parts `data`: what a user writes there stays text, even if it
  /// spells a control token. The text is still tokenised as one: words and merges cross the borders of the parts.
  /// Requires: the parts are ascending, disjoint and within the text.
  Result<std::vector<int>> encode(std::string_view text, std::span<const TextSpan> data, bool add_bos = true) const;

  /// The bytes of `ids`, which may start or end inside a UTF-8 character. Tokens that `encode` recognises in a text are
  /// spelled out; control tokens that it does not (those of .model and tokenizer.bin) are empty. `ids` are a whole
  /// text: the space that an SPM-style encoder puts at its start and after an added token is dropped, with or without
  /// BOS. Therefore, for byte-level and byte-fallback vocabularies, decode(encode(text, false)) equals `text`, except
  /// for the file's own normalisation (NFC, Metaspace) and U+2581, which SPM-style vocabularies read as a space.
  /// Errors: bad_argument, an id that the vocabulary lacks, with both numbers.
  Result<std::string> decode(std::span<const int> ids) const;

  /// The bytes that this token adds to a text; empty for an id that the vocabulary lacks. Keeps the encoder's own
  /// space, which StreamDecoder and `decode` drop.
  std::string token_text(int id) const;

  /// The largest id + 1, added tokens included. A model's own (padded) vocabulary may be larger.
  int vocab_size() const;
  /// The beginning-of-text token that `encode` puts first; none if the file names none.
  std::optional<int> bos() const;
  /// The unknown token, for what the vocabulary cannot spell; none if the file names none.
  std::optional<int> unk() const;
  /// True for control tokens, which a reader of the text should not see.
  bool is_special(int id) const;
  /// True for an added token: `encode` recognises it in a text before it applies merges.
  bool is_added(int id) const;
  /// The added tokens whose text marks the end of a chat turn ("<|im_end|>"), ascending. Empty if the file itself names
  /// that token.
  const std::vector<int>& end_of_turn() const;
  /// Parts of the tokenizer's files that Kvasir does not use.
  const std::vector<Ignored>& ignored() const;
  /// The id of a piece in the vocabulary's own spelling ("Ġthe"), added tokens included.
  std::optional<int> find(std::string_view piece) const;
  /// The vocabulary's own spelling; empty for an id that it lacks.
  std::string piece(int id) const;

  struct Impl;  ///< internal to the library
  explicit Tokenizer(std::unique_ptr<const Impl> impl);
  const Impl& impl() const { return *impl_; }

 private:
  std::unique_ptr<const Impl> impl_;
};

/// Turns ids into printable text one at a time; what it returns is always whole, valid UTF-8. A stream may start in
/// mid-text, so a space at its start is kept; the encoder's own space after BOS or another added token is dropped as in
/// `decode`. Not thread-safe: one per stream.
class KVASIR_API StreamDecoder {
 public:
  explicit StreamDecoder(std::shared_ptr<const Tokenizer> tokenizer);

  /// Returns the text that became complete with this token, perhaps empty. Up to 3 bytes that may still become a
  /// character are held back; bytes that never can are replaced by U+FFFD at once. An id that the vocabulary lacks adds
  /// nothing.
  std::string push(int id);

  /// Ends the stream: returns U+FFFD if it stopped inside a character, else an empty text. The decoder can then be used
  /// for a new stream.
  std::string finish();

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::string pending_;
  int previous_;
};

/// The ids of `text` as a continuation of `before`, so that `before` followed by them is one sequence. If the ids of
/// the whole text begin with `before`, they are the rest of those. If not (a model may spell a text with other tokens
/// than the encoder, or a token would cross the seam), they are those of `text` in the middle of some other text. An
/// empty `before` means the start of a text, with its BOS. `data`: parts of `text` in which added tokens are not
/// recognised, as in Tokenizer::encode. Errors: those of Tokenizer::encode.
KVASIR_API Result<std::vector<int>> encode_after(const Tokenizer& tokenizer, std::span<const int> before,
                                                 std::string_view text, std::span<const TextSpan> data = {});

/// The text of `ids` for a reader: whole UTF-8 characters, no control tokens.
KVASIR_API std::string visible_text(const std::shared_ptr<const Tokenizer>& tokenizer, std::span<const int> ids);

}  // namespace kvasir
