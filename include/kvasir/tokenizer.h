// Text to token ids and back: byte-level BPE and SentencePiece-style BPE, from Hugging Face's tokenizer.json,
// SentencePiece's .model, a folder that holds one of the two, and llama2.c's tokenizer.bin. A GGUF file's tokenizer is
// made where the file is read.
// How a vocabulary is read and merged lives in src/token; chat templates are not here.
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
  bool noted = false;  ///< the user should hear of it when the model is opened
};

/// One line for a user: the noted ones by reason, "not used: vision_tower.a and 311 more (vision tower)"; empty when
/// none is noted.
KVASIR_API std::string note_of(std::span<const Ignored> ignored);

/// A part of a text, in bytes.
struct TextSpan {
  std::size_t begin = 0, end = 0;
  bool operator==(const TextSpan&) const = default;
};

/// An immutable tokenizer. Every method is const and may be called from many threads at once.
class KVASIR_API Tokenizer {
 public:
  /// Reads a Hugging Face `tokenizer.json` that holds a BPE model, byte-level (GPT-2, Llama 3, Qwen) or with U+2581 for
  /// a space and byte fallback (Llama 2, Mistral, Phi-3). Anything in the file that would change ids and is not
  /// understood (a normalizer, pre-tokenizer, decoder, post-processor, model or flag) is refused by its name.
  static Result<std::shared_ptr<const Tokenizer>> from_json(const std::filesystem::path& tokenizer_json);

  /// Reads llama2.c's `tokenizer.bin`, whose number of tokens stands in the model file and not here. Fails when the
  /// file holds fewer or more tokens than `vocab_size`. Source: karpathy/llama2.c run.c, `build_tokenizer` and
  /// `encode`.
  static Result<std::shared_ptr<const Tokenizer>> from_llama2c(const std::filesystem::path& tokenizer_bin,
                                                               int vocab_size);

  /// Reads a SentencePiece `.model` of type BPE. Its control pieces are not recognised in a text, its user-defined ones
  /// are. Unigram, word and character models, a precompiled_charsmap, treat_whitespace_as_suffix and
  /// remove_extra_whitespaces are refused by their names.
  static Result<std::shared_ptr<const Tokenizer>> from_sentencepiece(const std::filesystem::path& model);

  /// Reads the tokenizer of a Hugging Face folder: its `tokenizer.json`, else its `tokenizer.model`, with what
  /// `tokenizer_config.json`, `added_tokens.json` and `special_tokens_map.json` say beside it. Here the unknown,
  /// control and user-defined pieces of a `.model` are looked for in a text before anything else, as GGUF's are. What
  /// contradicts the tokenizer, or would change ids and is not understood, is refused by its name.
  static Result<std::shared_ptr<const Tokenizer>> from_folder(const std::filesystem::path& folder);

  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  /// The ids of `text`, at most 1 GiB. Added tokens (special ones mostly) that a tokenizer.json or a GGUF file names
  /// are recognised in the text. With `add_bos` the file's own beginning-of-text token comes first, exactly once, even
  /// if the text starts with it already; a file that names none adds none. Bytes that are not UTF-8 are kept, each as
  /// its own byte token. A byte (in a vocabulary of characters: a character) without a token becomes the unknown token;
  /// where the file names none that is an error with the byte and its offset.
  Result<std::vector<int>> encode(std::string_view text, bool add_bos = true) const;

  /// The same, but added tokens are not looked for in the parts `data`: what a user writes there stays text, even where
  /// it spells a control token. The text is still one: words and merges cross the borders of the parts. Requires:
  /// `data` ascending, apart, within the text.
  Result<std::vector<int>> encode(std::string_view text, std::span<const TextSpan> data, bool add_bos = true) const;

  /// The bytes of `ids`, which may start or end inside a UTF-8 character. Tokens that `encode` recognises in a text are
  /// spelled out; control tokens that it does not (those of .model and tokenizer.bin) are empty. `ids` are a whole
  /// text: the space that an SPM-style encoder puts at its start, and after an added token, is dropped, with or without
  /// BOS. So for byte-level and byte-fallback vocabularies decode(encode(text, false)) is `text`, up to what the file
  /// itself does to a text (NFC, Metaspace) and U+2581, which SPM-style vocabularies read as a space. Fails on an id
  /// that the vocabulary lacks, with both numbers.
  Result<std::string> decode(std::span<const int> ids) const;

  /// The bytes that this token adds to a text; empty for an id that the vocabulary lacks. The encoder's own space that
  /// StreamDecoder and `decode` drop is kept here.
  std::string token_text(int id) const;

  /// The largest id + 1, added tokens included. A model's own (padded) vocabulary may be larger.
  int vocab_size() const;
  /// The token that `encode` puts first.
  std::optional<int> bos() const;
  /// The token that stands for what the vocabulary cannot spell.
  std::optional<int> unk() const;
  /// True for control tokens, which are not part of the text that a reader should see.
  bool is_special(int id) const;
  /// True for a token that `encode` looks for in a text before anything else.
  bool is_added(int id) const;
  /// The added tokens that end a turn of a chat by their texts ("<|im_end|>"), ascending. Empty where the file itself
  /// names the token that does.
  const std::vector<int>& end_of_turn() const;
  /// Parts of the tokenizer's files that Kvasir does not use.
  const std::vector<Ignored>& ignored() const;
  /// The id of a piece in the vocabulary's own spelling ("Ġthe"), added tokens included.
  std::optional<int> find(std::string_view piece) const;
  /// The vocabulary's own spelling; empty for an id that it lacks.
  std::string piece(int id) const;

  struct Impl;  ///< the library's own
  explicit Tokenizer(std::unique_ptr<const Impl> impl);
  const Impl& impl() const { return *impl_; }

 private:
  std::unique_ptr<const Impl> impl_;
};

/// Turns ids into printable text one at a time: what it returns is always whole, valid UTF-8. It may start in mid-text,
/// so a space at its start is kept; the encoder's own after BOS or another added token is dropped as in `decode`. Not
/// thread-safe: one per stream.
class KVASIR_API StreamDecoder {
 public:
  explicit StreamDecoder(std::shared_ptr<const Tokenizer> tokenizer);

  /// The text that became complete with this token, perhaps empty. Up to 3 bytes that may still become a character are
  /// held back; bytes that never can are U+FFFD at once. An id that the vocabulary lacks adds nothing.
  std::string push(int id);

  /// What is left: U+FFFD if the stream stopped inside a character, else empty. The decoder is then as new.
  std::string finish();

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::string pending_;
  int previous_;
};

/// The ids of `text` where it follows the text of `before`, so that `before` and they are one sequence. They are those
/// of the whole text where that begins with `before`. Where it does not (a model may spell a text in other tokens than
/// the encoder would, or a token would reach over the seam), they are those that `text` has in the middle of some other
/// text. An empty `before` is the start of a text, with its first token. `data`: parts of `text` in which added tokens
/// are not looked for, as Tokenizer::encode takes them. Errors: those of Tokenizer::encode.
KVASIR_API Result<std::vector<int>> encode_after(const Tokenizer& tokenizer, std::span<const int> before,
                                                 std::string_view text, std::span<const TextSpan> data = {});

/// The text of `ids` for a reader: whole characters, no control tokens.
KVASIR_API std::string visible_text(const std::shared_ptr<const Tokenizer>& tokenizer, std::span<const int> ids);

}  // namespace kvasir
