// SentencePiece-style BPE over characters, by score or by rank of merges. Knows no file format: the readers of
// tokenizer.bin, .model, GGUF and tokenizer.json fill SpmTables.
#pragma once

#include <array>
#include <limits>
#include <memory>
#include <vector>

#include "token/added_tokens.h"
#include "token/bpe_tables.h"
#include "token/merge_queue.h"
#include "token/model.h"
#include "token/safe_cuts.h"

namespace kvasir {

/// The spelling of a space in SentencePiece vocabularies.
inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581

enum class PieceKind : std::uint8_t {
  kNormal,
  kUnknown,
  kControl,
  kUserDefined,  ///< if not in `added`: always one symbol in the text; else also merged like kNormal
  kUnused,       ///< takes part in merging, then is split again
  kByte,         ///< "<0x0A>" is the byte 10
};

/// Where the encoder adds a space. A stretch is the text between two added tokens.
enum class SpaceBefore {
  kNever,
  kEvery,           ///< before every stretch, even one that starts with a space
  kEveryIfMissing,  ///< before every stretch that does not start with one
  kFirstIfMissing,  ///< only at the start of the text, if it does not start with one
};

/// All data of an SPM-style tokenizer.
struct SpmTables : BpeTables {
  std::vector<PieceKind> kinds;  ///< by id
  std::vector<float> scores;     ///< by id; the highest merges first. Empty: `merges` decide
  /// A pair never merges if the score of the result is at most this.
  float floor = -std::numeric_limits<float>::infinity();
  SpaceBefore space_before = SpaceBefore::kNever;
  bool marks_spaces = true;     ///< pieces spell a space as kSpaceMark
  bool cuts_at_spaces = false;  ///< no piece crosses the start of a word
  bool byte_fallback = false;   ///< a character without a piece becomes the pieces of its bytes
};

/// Returns the byte that a piece like "<0x0A>" stands for; nullopt for any other piece.
std::optional<unsigned char> spelled_byte(std::string_view piece);

class SpmModel final : public TokenModel {
 public:
  /// Fails if an added token is empty or too long. Requires: `kinds`, and `scores` unless empty, have an entry for
  /// every id.
  static Result<std::unique_ptr<const TokenModel>> make(SpmTables tables);

  Result<std::vector<int>> encode(std::string_view text, std::span<const TextSpan> data, bool add_bos) const override;
  std::string text(int id) const override;
  bool is_special(int id) const override;
  bool is_added(int id) const override { return added_.has(id); }
  std::optional<int> bos() const override;
  std::optional<int> unk() const override { return tables_.unk; }
  bool drops_space(int previous, int id) const override;
  const Vocabulary& vocabulary() const override { return tables_.vocabulary; }
  const SpmTables& tables() const { return tables_; }

 private:
  class Encoder;
  explicit SpmModel(SpmTables tables);

  PieceKind kind(int id) const { return tables_.kinds[static_cast<std::size_t>(id)]; }
  std::string_view space() const { return tables_.marks_spaces ? kSpaceMark : " "; }
  std::string normalized(std::string_view text, bool put_space) const;
  /// True for an added token that matches the text as spelled. False for a user-defined one with kSpaceMark, which is
  /// mostly made by merging.
  bool stands_for_itself(int id) const;
  /// Returns the id of a piece that merging may make; -1 if there is none, or if it is unknown, control or byte.
  int find_piece(std::string_view text) const;

  SpmTables tables_;
  AddedTokens added_;
  AddedTokenFinder user_defined_;
  std::array<int, 256> byte_ids_{};  // -1 where a byte has no piece
  std::size_t longest_piece_ = 0;    // in bytes
  bool has_unused_ = false;
  Seams seams_;
};

}  // namespace kvasir
