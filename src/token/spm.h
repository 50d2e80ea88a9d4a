// SentencePiece-style BPE by score, as llama2.c's tokenizer.bin wants it. Reading .model files and GGUF is not here.
#pragma once

#include <memory>
#include <vector>

#include "token/merge_queue.h"
#include "token/model.h"

namespace kvasir {

/// Token 0 is unknown, 1 BOS, 2 EOS, 3 + b the byte b. Source: karpathy/llama2.c run.c, `encode` and `decode`.
class SpmModel final : public TokenModel {
 public:
  /// The bytes of a tokenizer.bin: max_token_length u32, then per token score f32, length u32, bytes (little-endian).
  static Result<std::unique_ptr<const TokenModel>> from_llama2c(std::string_view bytes, int vocab_size);

  Result<std::vector<int>> encode(std::string_view text, bool add_bos) const override;
  std::string text(int id) const override;
  bool is_special(int id) const override { return id >= 0 && id < kFirstByte; }
  std::optional<int> bos() const override { return kBos; }
  std::optional<int> unk() const override { return kUnk; }
  bool drops_space_after_bos() const override { return true; }
  const Vocabulary& vocabulary() const override { return vocabulary_; }

 private:
  static constexpr int kUnk = 0;
  static constexpr int kBos = 1;
  static constexpr int kFirstByte = 3;

  Result<void> append_symbols(std::string_view character, std::size_t offset, std::vector<int>& symbols) const;
  std::optional<MergeTarget> find_merge(int left, int right, std::string& whole) const;

  Vocabulary vocabulary_;
  std::vector<float> scores_;
};

}  // namespace kvasir
