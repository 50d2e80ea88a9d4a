// Text to token ids and back: byte-level BPE (Hugging Face tokenizer.json) and llama2.c's tokenizer.bin.
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

namespace kvasir {

class TokenModel;

/// An immutable tokenizer. Every method is const and may be called from many threads at once.
class Tokenizer {
 public:
  /// Reads a Hugging Face `tokenizer.json` that holds a byte-level BPE model. Anything in the file that would change
  /// ids and is not understood (a normalizer, pre-tokenizer, decoder, post-processor, model or flag) is refused by its
  /// name.
  static Result<std::shared_ptr<const Tokenizer>> from_json(const std::filesystem::path& tokenizer_json);

  /// Reads llama2.c's `tokenizer.bin`, whose number of tokens stands in the model file and not here. Fails when the
  /// file holds fewer or more tokens than `vocab_size`. Source: karpathy/llama2.c run.c, `build_tokenizer` and
  /// `encode`.
  static Result<std::shared_ptr<const Tokenizer>> from_llama2c(const std::filesystem::path& tokenizer_bin,
                                                               int vocab_size);

  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  /// The ids of `text`, at most 1 GiB. Special tokens that a tokenizer.json names are recognised in the text. With
  /// `add_bos` the file's own beginning-of-text token comes first, exactly once, even if the text starts with it
  /// already; a file that names none adds none. Bytes that are not UTF-8 are kept, each as its own byte token. Fails on
  /// a byte without a token when the vocabulary has no unknown token, with the byte and its offset.
  Result<std::vector<int>> encode(std::string_view text, bool add_bos = true) const;

  /// The bytes of `ids`, which may start or end inside a UTF-8 character. Special tokens are spelled out (llama2.c's
  /// BOS and EOS are empty). Fails on an id that the vocabulary lacks, with both numbers.
  Result<std::string> decode(std::span<const int> ids) const;

  /// The bytes that this token adds to a text; empty for an id that the vocabulary lacks. llama2.c drops one space
  /// right after BOS: StreamDecoder and `decode` do that, this does not.
  std::string token_text(int id) const;

  /// The largest id + 1, added tokens included. A model's own (padded) vocabulary may be larger.
  int vocab_size() const;
  /// The token that `encode` puts first.
  std::optional<int> bos() const;
  /// The token that stands for what the vocabulary cannot spell.
  std::optional<int> unk() const;
  /// True for control tokens, which are not part of the text that a reader should see.
  bool is_special(int id) const;
  /// The id of a piece in the vocabulary's own spelling ("Ġthe"), added tokens included.
  std::optional<int> find(std::string_view piece) const;
  /// The vocabulary's own spelling; empty for an id that it lacks.
  std::string piece(int id) const;

 private:
  friend class StreamDecoder;
  explicit Tokenizer(std::unique_ptr<const TokenModel> model);

  std::unique_ptr<const TokenModel> model_;
};

/// Turns ids into printable text one at a time: what it returns is always whole, valid UTF-8. Not thread-safe: one per
/// stream.
class StreamDecoder {
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
  int previous_ = -1;
};

}  // namespace kvasir
