// From GGUF's arrays to the tables of a tokenizer. gguf_vocab_of.cc does the inverse. Source of keys, types and
// defaults: ggml-org/llama.cpp src/llama-vocab.cpp and gguf-py/gguf/constants.py.
#include "token/files/gguf_vocab.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "token/byte_level.h"
#include "token/exceptions_to_errors.h"
#include "token/files/gguf_pre.h"
#include "token/spm.h"
#include "token/utf8.h"

namespace kvasir {
namespace {

constexpr std::size_t kMaxTokens = std::size_t{1} << 24;

Result<void> check_length(const char* name, std::size_t length, std::size_t tokens) {
  if (length == tokens) return {};
  return fail(Error::damaged, fmt::format("tokenizer.ggml.{} has {} entries for {} tokens", name, length, tokens));
}

Result<void> check_no_space(const GgufVocab& vocab) {
  if (!vocab.add_space_prefix.value_or(false)) return {};
  return fail(Error::damaged,
              fmt::format("tokenizer.ggml.add_space_prefix is set, which a tokenizer of the kind {} has no use for",
                          quote(vocab.model)));
}

Result<void> check_ids(const GgufVocab& vocab) {
  const std::pair<const char*, std::optional<int>> ids[] = {
      {"bos", vocab.bos}, {"eos", vocab.eos}, {"eot", vocab.eot}, {"unknown", vocab.unk}};
  for (const auto& [name, id] : ids) {
    if (!id || (*id >= 0 && static_cast<std::size_t>(*id) < vocab.tokens.size())) continue;
    return fail(Error::damaged, fmt::format("tokenizer.ggml.{}_token_id {} is outside the vocabulary of {}", name, *id,
                                            vocab.tokens.size()));
  }
  return {};
}

Result<PieceKind> kind_of(const GgufVocab& vocab, std::size_t id) {
  switch (vocab.types.empty() ? GgufPiece::kNormal : vocab.types[id]) {
    case GgufPiece::kNormal:
      return PieceKind::kNormal;
    case GgufPiece::kUnknown:
      return PieceKind::kUnknown;
    case GgufPiece::kControl:
      return PieceKind::kControl;
    case GgufPiece::kUserDefined:
      return PieceKind::kUserDefined;
    case GgufPiece::kUnused:
      return PieceKind::kUnused;
    case GgufPiece::kByte:
      if (spelled_byte(vocab.tokens[id])) return PieceKind::kByte;
      return fail(Error::damaged,
                  fmt::format("token {} ({}) is a byte token that spells no byte", id, quote(vocab.tokens[id])));
    default:
      return fail(Error::unsupported, fmt::format("token {} is of type {}, which is not known", id, vocab.types[id]));
  }
}

// Fills the vocabulary, the added tokens, BOS and unk, which all kinds have. Appends one kind per token to `kinds`.
Result<void> fill(const GgufVocab& vocab, bool add_bos, BpeTables& tables, std::vector<PieceKind>& kinds) {
  std::size_t bytes = 0;
  for (const std::string_view token : vocab.tokens) bytes += token.size();
  tables.vocabulary.reserve(vocab.tokens.size(), bytes);
  const auto count = static_cast<std::int64_t>(vocab.tokens.size());
  for (std::size_t i = 0; i < vocab.tokens.size(); ++i) {
    const std::string_view token = vocab.tokens[i];
    const int id = static_cast<int>(i);
    KVASIR_TRY(const PieceKind kind, kind_of(vocab, i));
    kinds.push_back(kind);
    // Padding tokens may be empty, and several may be.
    KVASIR_CHECK(token.empty() ? tables.vocabulary.add_shadowed(token, id, count)
                               : tables.vocabulary.add(token, id, count));
    const bool special = kind == PieceKind::kUnknown || kind == PieceKind::kControl;
    if (token.empty() || !(special || kind == PieceKind::kUserDefined)) continue;
    tables.added.push_back(AddedToken{.content = std::string(token), .id = id, .special = special});
  }
  tables.unk = vocab.unk;
  if (!add_bos) return {};
  if (vocab.bos) {
    tables.prefix = {*vocab.bos};
  } else if (vocab.add_bos.value_or(false)) {
    return fail(Error::damaged, "tokenizer.ggml.add_bos_token is set, but there is no bos_token_id");
  }
  return {};
}

Result<void> fill_merges(const GgufVocab& vocab, BpeTables& tables) {
  tables.merges.reserve(vocab.merges.size());
  for (std::size_t i = 0; i < vocab.merges.size(); ++i) {
    const std::string_view merge = vocab.merges[i];
    const std::size_t space = merge.find(' ', 1);
    if (space == merge.npos)
      return fail(Error::damaged, fmt::format("merge {} ({}) is not two pieces", i + 1, quote(merge)));
    KVASIR_CHECK(tables.merges.add(merge.substr(0, space), merge.substr(space + 1), tables.vocabulary));
  }
  return {};
}

Result<std::unique_ptr<const TokenModel>> make_sentencepiece(const GgufVocab& vocab) {
  KVASIR_CHECK(check_length("scores", vocab.scores.size(), vocab.tokens.size()));
  KVASIR_CHECK(check_length("token_type", vocab.types.size(), vocab.tokens.size()));
  for (std::size_t id = 0; id < vocab.scores.size(); ++id) {
    if (!std::isfinite(vocab.scores[id]))
      return fail(Error::damaged, fmt::format("the score of token {} is not finite", id));
  }
  SpmTables tables;
  KVASIR_CHECK(fill(vocab, vocab.add_bos.value_or(true), tables, tables.kinds));
  for (AddedToken& token : tables.added) token.rstrip = swallows_space(vocab.rstrip_but, token.content);
  tables.scores = vocab.scores;
  tables.fuse_unk = true;
  tables.byte_fallback = true;
  tables.space_before = vocab.add_space_prefix.value_or(true) ? SpaceBefore::kEvery : SpaceBefore::kNever;
  return SpmModel::make(std::move(tables));
}

Result<std::unique_ptr<const TokenModel>> make_byte_level(const GgufVocab& vocab) {
  KVASIR_TRY(const PreTokenization* pre, find_pre(vocab.pre));
  KVASIR_CHECK(check_no_space(vocab));
  if (!vocab.types.empty()) KVASIR_CHECK(check_length("token_type", vocab.types.size(), vocab.tokens.size()));
  ByteLevelTables tables;
  std::vector<PieceKind> kinds;
  KVASIR_CHECK(fill(vocab, vocab.add_bos.value_or(pre->has(PreTokenization::kAddBos)), tables, kinds));
  KVASIR_CHECK(fill_merges(vocab, tables));
  tables.cuts = pre->cuts;
  tables.nfc = pre->has(PreTokenization::kNfc);
  tables.ignore_merges = pre->has(PreTokenization::kIgnoreMerges);
  return ByteLevelModel::make(std::move(tables));
}

// BOS always comes first: Gemma 4 files with add_bos_token = false are wrong; llama.cpp overrides them too.
Result<std::unique_ptr<const TokenModel>> make_gemma(const GgufVocab& vocab) {
  KVASIR_CHECK(check_no_space(vocab));
  KVASIR_CHECK(check_length("token_type", vocab.types.size(), vocab.tokens.size()));
  SpmTables tables;
  KVASIR_CHECK(fill(vocab, true, tables, tables.kinds));
  KVASIR_CHECK(fill_merges(vocab, tables));
  tables.fuse_unk = true;
  tables.byte_fallback = true;
  return SpmModel::make(std::move(tables));
}

}  // namespace

bool swallows_space(const RstripBut& but, std::string_view token) {
  return but && std::find(but->begin(), but->end(), token) == but->end();
}

Result<std::unique_ptr<const TokenModel>> make_gguf_tokenizer(const GgufVocab& vocab) {
  return guarded([&]() -> Result<std::unique_ptr<const TokenModel>> {
    if (vocab.tokens.empty() || vocab.tokens.size() > kMaxTokens) {
      return fail(Error::unsupported,
                  fmt::format("a vocabulary of {} tokens is not in 1..{}", vocab.tokens.size(), kMaxTokens));
    }
    KVASIR_CHECK(check_ids(vocab));
    if (vocab.model == kGgufSentencePiece) return make_sentencepiece(vocab);
    if (vocab.model == kGgufByteLevel) return make_byte_level(vocab);
    if (vocab.model == kGgufGemma) return make_gemma(vocab);
    return fail(
        Error::unsupported,
        fmt::format("the tokenizer model {} (tokenizer.ggml.model) is not supported; known: llama, gpt2, gemma4",
                    quote(vocab.model)));
  });
}

}  // namespace kvasir
