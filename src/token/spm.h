// SentencePiece-style BPE over characters, by score or by rank of merges. Knows no file format: the readers of
// tokenizer.bin, .model, GGUF and tokenizer.json fill SpmParts.
#pragma once

#include <array>
#include <limits>
#include <memory>
#include <vector>

#include "token/added_tokens.h"
#include "token/bpe_parts.h"
#include "token/merge_queue.h"
#include "token/model.h"
#include "token/seams.h"

namespace kvasir {

/// How such vocabularies spell a space.
inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581

enum class PieceKind : std::uint8_t {
  kNormal,
  kUnknown,
  kControl,
  kUserDefined,  ///< where `added` does not hold it: one symbol wherever it stands in the text; else as kNormal too
  kUnused,       ///< merged through, then taken apart again
  kByte,         ///< "<0x0A>" is the byte 10
};

/// Whether the encoder puts a space of its own before a text, or before each stretch of it between added tokens.
enum class SpaceBefore {
  kNever,
  kEvery,           ///< every stretch, even one that starts with a space
  kEveryIfMissing,  ///< every stretch that does not start with one
  kFirstIfMissing,  ///< only where the text itself begins, unless it starts with one
};

/// Everything that an SPM-style tokenizer is made of.
struct SpmParts : BpeParts {
  std::vector<PieceKind> kinds;  ///< by id
  std::vector<float> scores;     ///< by id; the best is merged first. Empty: `merges` say what is merged
  /// Pairs whose whole scores this or less are never merged.
  float floor = -std::numeric_limits<float>::infinity();
  SpaceBefore space_before = SpaceBefore::kNever;
  bool marks_spaces = true;     ///< pieces have kSpaceMark for a space
  bool cuts_at_spaces = false;  ///< no piece reaches over the start of a word
  bool byte_fallback = false;   ///< a character without a piece becomes its bytes' pieces
};

/// The byte that a piece like "<0x0A>" stands for.
std::optional<unsigned char> spelled_byte(std::string_view piece);

class SpmModel final : public TokenModel {
 public:
  /// Fails on an added token that cannot be looked for. Requires: kinds, and scores unless empty, for every id.
  static Result<std::unique_ptr<const TokenModel>> make(SpmParts parts);

  Result<std::vector<int>> encode(std::string_view text, std::span<const TextSpan> data, bool add_bos) const override;
  std::string text(int id) const override;
  bool is_special(int id) const override;
  bool is_added(int id) const override { return added_.has(id); }
  std::optional<int> bos() const override;
  std::optional<int> unk() const override { return parts_.unk; }
  bool drops_space(int previous, int id) const override;
  const Vocabulary& vocabulary() const override { return parts_.vocabulary; }
  const SpmParts& parts() const { return parts_; }

 private:
  class Encoder;
  explicit SpmModel(SpmParts parts);

  PieceKind kind(int id) const { return parts_.kinds[static_cast<std::size_t>(id)]; }
  std::string_view space() const { return parts_.marks_spaces ? kSpaceMark : " "; }
  std::string normalized(std::string_view text, bool put_space) const;
  /// An added token that is found in the text as it is spelled. A user-defined one with a mark for a space is mostly
  /// made by merging instead.
  bool stands_for_itself(int id) const;
  /// A piece that text may become: -1 for one that is not there, or only stands for itself (control, byte).
  int find_piece(std::string_view text) const;

  SpmParts parts_;
  AddedTokens added_;
  AddedTokenFinder user_defined_;
  std::array<int, 256> byte_ids_{};  // -1 where a byte has no piece
  std::size_t longest_piece_ = 0;    // in bytes
  bool has_unused_ = false;
  Seams seams_;
};

}  // namespace kvasir
