// From text to ids by merging spans. Sources of the rules: google/sentencepiece bpe_model.cc (scores, user-defined and
// unused pieces), huggingface/tokenizers models/bpe and pre_tokenizers/metaspace.rs (ranks), ggml-org/llama.cpp
// llama-vocab.cpp (a space before every stretch).
#include "token/spm.h"

#include <algorithm>
#include <bit>
#include <span>

#include <fmt/format.h>
#include <boost/unordered/unordered_flat_map.hpp>

#include "token/text_spans.h"
#include "token/utf8.h"

namespace kvasir {
namespace {

// The best score gets the smallest priority: IEEE bits made monotone, then inverted.
std::uint32_t priority_of(float score) {
  const auto bits = std::bit_cast<std::uint32_t>(score + 0.0f);  // -0 and +0 are one score
  const std::uint32_t ascending = (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
  return ~ascending;
}

bool puts_space_first(SpaceBefore space) { return space == SpaceBefore::kNever || space == SpaceBefore::kEvery; }

}  // namespace

std::optional<unsigned char> spelled_byte(std::string_view piece) {
  const auto digit = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1; };
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece[5] != '>') return std::nullopt;
  if (digit(piece[3]) < 0 || digit(piece[4]) < 0) return std::nullopt;
  return static_cast<unsigned char>(digit(piece[3]) * 16 + digit(piece[4]));
}

// One call of encode: its buffers and its output.
class SpmModel::Encoder {
 public:
  explicit Encoder(const SpmModel& model) : model_(model), tables_(model.tables_) {}

  Result<std::vector<int>> run(std::string_view text, std::span<const TextSpan> data) {
    text_ = text;
    data_ = data;
    KVASIR_CHECK(model_.added_.raw().split(text, data, out_, [this](std::string_view part) { return stretch(part); }));
    return std::move(out_);
  }

 private:
  using Symbol = MergeQueue::Symbol;

  Result<void> stretch(std::string_view raw) {
    const AddedTokenFinder& finder = model_.added_.normalized();
    const auto begin = static_cast<std::size_t>(raw.data() - text_.data());
    std::vector<TextSpan> data = spans_within(data_, begin, begin + raw.size());
    if (puts_space_first(tables_.space_before)) {
      normalize(raw, tables_.space_before == SpaceBefore::kEvery);
      data = moved_spans(data, raw, [this](std::string_view part) { return model_.normalized(part, false).size(); });
      const std::size_t put = put_space_ && !raw.empty() ? model_.space().size() : 0;
      for (TextSpan& span : data) span = {span.begin + put, span.end + put};
      return finder.split(normal_, data, out_, [this](std::string_view part) { return words(part); });
    }
    return finder.split(raw, data, out_, [this](std::string_view part) {
      const bool every = tables_.space_before == SpaceBefore::kEveryIfMissing;
      const bool missing = !part.starts_with(' ') && !part.starts_with(kSpaceMark);
      normalize(part, missing && (every || part.data() == text_.data()));
      return words(normal_);
    });
  }

  void normalize(std::string_view raw, bool put_space) {
    raw_ = raw;
    put_space_ = put_space;
    normal_ = model_.normalized(raw, put_space);
  }

  Result<void> words(std::string_view text) {
    if (!tables_.cuts_at_spaces) return word(text);
    while (!text.empty()) {
      const std::size_t end = std::min(text.find(model_.space(), 1), text.size());
      KVASIR_CHECK(word(text.substr(0, end)));
      text.remove_prefix(end);
    }
    return {};
  }

  Result<void> word(std::string_view word) {
    word_ = word;
    after_unk_ = false;
    if (!tables_.scores.empty()) return merge_by_score();
    if (tables_.ignore_merges) {
      if (const auto whole = tables_.vocabulary.find(word); whole && !model_.added_.has(*whole)) {
        out_.push_back(*whole);
        return {};
      }
    }
    return merge_by_rank();
  }

  // Symbols are spans of the text; their ids are looked up only after merging.
  Result<void> merge_by_score() {
    std::size_t begin = 0;
    std::uint32_t left = 0;
    for (std::size_t at = 0; at < word_.size();) {
      const auto defined = model_.user_defined_.empty() ? std::nullopt : model_.user_defined_.longest_at(word_, at);
      const Seams::Char character = Seams::first(word_.substr(at));
      if (at > begin && !defined && !model_.has_unused_ && !model_.seams_.may_join(left, character.code)) {
        KVASIR_CHECK(merge_run(word_.substr(begin, at - begin)));
        begin = at;
      }
      const std::size_t length = defined ? defined->end - at : character.length;
      queue_.add(defined ? defined->id : -1, static_cast<std::uint32_t>(length));
      left = character.code;
      at += length;
    }
    return merge_run(word_.substr(begin));
  }

  // Merges the queue, which holds the symbols of `run`.
  Result<void> merge_run(std::string_view run) {
    run_ = run;
    splits_.clear();
    queue_.merge([this](const Symbol& left, const Symbol& right) { return find_merge(left, right); });
    Result<void> done;
    queue_.for_each([&](const Symbol& symbol) {
      if (done) done = settle(run.substr(symbol.begin, symbol.length), symbol.id);
    });
    queue_.clear();
    return done;
  }

  std::optional<MergeTarget> find_merge(const Symbol& left, const Symbol& right) {
    const std::size_t length = std::size_t{left.length} + right.length;
    if (length > model_.longest_piece_ || is_frozen(left) || is_frozen(right)) return std::nullopt;
    const std::string_view whole = run_.substr(left.begin, length);
    const int id = model_.find_piece(whole);
    if (id < 0) return std::nullopt;
    const float score = tables_.scores[static_cast<std::size_t>(id)];
    if (!(score > tables_.floor)) return std::nullopt;
    if (model_.has_unused_ && model_.kind(id) == PieceKind::kUnused) splits_[whole] = left.length;
    return MergeTarget{priority_of(score), id};
  }

  // True for a user-defined piece, which never merges further. No merge makes one: its text is a symbol from the start.
  bool is_frozen(const Symbol& symbol) const {
    return symbol.id >= 0 && !model_.user_defined_.empty() && model_.kind(symbol.id) == PieceKind::kUserDefined;
  }

  // Appends the ids of a span that merging left; `id` is -1 if it has not been looked up. An unused piece is split into
  // the two spans that last made it, recursively.
  Result<void> settle(std::string_view span, int id) {
    pending_.push_back(span);
    while (!pending_.empty()) {
      span = pending_.back();
      pending_.pop_back();
      if (id < 0) id = model_.find_piece(span);
      const auto split = id >= 0 && model_.kind(id) == PieceKind::kUnused ? splits_.find(span) : splits_.end();
      if (split != splits_.end()) {
        pending_.push_back(span.substr(split->second));
        pending_.push_back(span.substr(0, split->second));
      } else if (id >= 0) {
        out_.push_back(id);
        after_unk_ = false;
      } else {
        KVASIR_CHECK(unknown(span));
      }
      id = -1;
    }
    return {};
  }

  Result<void> unknown(std::string_view span) {
    if (const auto bytes = byte_pieces(span); !bytes.empty()) {
      out_.insert(out_.end(), bytes.begin(), bytes.end());
      return {};
    }
    if (!tables_.unk) return missing(span);
    if (!(tables_.fuse_unk && after_unk_)) out_.push_back(*tables_.unk);
    after_unk_ = true;
    return {};
  }

  // Symbols are ids: of a character, of its bytes, or unk.
  Result<void> merge_by_rank() {
    std::uint32_t unknown_bytes = 0;  // bytes of the unk that is still to be added
    const auto add_unknown = [&] {
      if (unknown_bytes > 0) queue_.add(*tables_.unk, unknown_bytes);
      unknown_bytes = 0;
    };
    std::optional<std::uint32_t> left;  // the last character, if it has a piece
    for (std::size_t at = 0; at < word_.size();) {
      const Seams::Char next = Seams::first(word_.substr(at));
      const std::string_view character = word_.substr(at, next.length);
      const auto id = tables_.vocabulary.find(character);
      const std::span<const int> bytes = id ? std::span<const int>() : byte_pieces(character);
      if (id || !bytes.empty() || !tables_.fuse_unk) add_unknown();
      if (id) {
        if (left && !model_.seams_.may_join(*left, next.code)) merge_ranked();
        queue_.add(*id, next.length);
      } else if (!bytes.empty()) {
        for (const int byte : bytes) queue_.add(byte, 1);
      } else if (tables_.unk) {
        unknown_bytes += next.length;
      } else {
        return missing(character);
      }
      left = id ? std::optional(next.code) : std::nullopt;
      at += next.length;
    }
    add_unknown();
    merge_ranked();
    return {};
  }

  void merge_ranked() {
    tables_.merges.merge(queue_, out_);
    queue_.clear();
  }

  // Returns the pieces of a character's bytes; empty unless every byte has one.
  std::span<const int> byte_pieces(std::string_view character) {
    if (!tables_.byte_fallback) return {};
    bytes_.clear();
    for (const char byte : character) {
      const int id = model_.byte_ids_[static_cast<unsigned char>(byte)];
      if (id < 0) return {};
      bytes_.push_back(id);
    }
    return bytes_;
  }

  // Requires: `span` lies in the normalised stretch.
  Result<void> missing(std::string_view span) const {
    const std::size_t at = static_cast<std::size_t>(raw_.data() - text_.data()) +
                           raw_offset(static_cast<std::size_t>(span.data() - normal_.data()));
    const auto byte = static_cast<unsigned>(static_cast<unsigned char>(span[0]));
    return fail(
        Error::bad_argument,
        fmt::format("byte 0x{:02X} at offset {} ({}) has no token in this vocabulary, which has no unknown token", byte,
                    at, quote(span)),
        "text", "leave the character out or use another model");
  }

  std::size_t raw_offset(std::size_t offset) const {
    const std::size_t space = model_.space().size();
    std::size_t at = put_space_ ? space : 0;
    std::size_t raw = 0;
    for (; at < offset && raw < raw_.size(); ++raw) at += raw_[raw] == ' ' ? space : 1;
    return raw;
  }

  const SpmModel& model_;
  const SpmTables& tables_;
  std::string_view text_;
  std::span<const TextSpan> data_;
  std::string_view raw_;  // the stretch that normal_ was made from
  bool put_space_ = false;
  std::string normal_;
  std::string_view word_;
  std::string_view run_;  // the part of word_ whose symbols the queue holds
  bool after_unk_ = false;
  MergeQueue queue_;
  boost::unordered_flat_map<std::string_view, std::uint32_t> splits_;  // of unused pieces: the left half's length
  std::vector<std::string_view> pending_;
  std::vector<int> bytes_;
  std::vector<int> out_;
};

SpmModel::SpmModel(SpmTables tables) : tables_(std::move(tables)) {
  byte_ids_.fill(-1);
  for (int id = 0; id < tables_.vocabulary.size(); ++id) {
    const std::string_view piece = tables_.vocabulary.piece(id);
    seams_.add(piece);
    if (kind(id) == PieceKind::kByte) {
      if (const auto byte = spelled_byte(piece); byte && byte_ids_[*byte] < 0) byte_ids_[*byte] = id;
    } else if (kind(id) != PieceKind::kControl && kind(id) != PieceKind::kUnknown) {
      longest_piece_ = std::max(longest_piece_, piece.size());
    }
    has_unused_ |= kind(id) == PieceKind::kUnused;
  }
}

Result<std::unique_ptr<const TokenModel>> SpmModel::make(SpmTables tables) {
  std::unique_ptr<SpmModel> model(new SpmModel(std::move(tables)));
  const SpmTables& made = model->tables_;
  const auto normalize = [&](std::string_view text) -> Result<std::string> {
    if (!puts_space_first(made.space_before)) return std::string(text);
    return model->normalized(text, made.space_before == SpaceBefore::kEvery);
  };
  KVASIR_TRY(model->added_, AddedTokens::make(made.added, made.vocabulary.size(), normalize));
  for (int id = 0; id < made.vocabulary.size(); ++id) {
    const std::string_view piece = made.vocabulary.piece(id);
    if (model->kind(id) != PieceKind::kUserDefined || model->added_.has(id) || piece.empty()) continue;
    model->user_defined_.add(AddedToken{.content = {}, .id = id}, piece);
  }
  return std::unique_ptr<const TokenModel>(std::move(model));
}

std::string SpmModel::normalized(std::string_view text, bool put_space) const {
  std::string normal;
  normal.reserve(text.size() + text.size() / 2 + space().size());
  if (put_space && !text.empty()) normal.append(space());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    normal.append(text.substr(at, end - at));
    if (end < text.size()) normal.append(space());
    at = end + 1;
  }
  return normal;
}

int SpmModel::find_piece(std::string_view text) const {
  const int id = tables_.vocabulary.find(text).value_or(-1);
  if (id < 0) return -1;
  switch (kind(id)) {
    case PieceKind::kNormal:
    case PieceKind::kUnused:
    case PieceKind::kUserDefined:
      return id;
    default:
      return -1;
  }
}

Result<std::vector<int>> SpmModel::encode(std::string_view text, std::span<const TextSpan> data, bool add_bos) const {
  KVASIR_TRY(std::vector<int> ids, Encoder(*this).run(text, data));
  if (add_bos) put_prefix(tables_.prefix, ids);
  return ids;
}

bool SpmModel::stands_for_itself(int id) const {
  const bool merged =
      kind(id) == PieceKind::kUserDefined && tables_.vocabulary.piece(id).find(kSpaceMark) != std::string_view::npos;
  return added_.has(id) && !merged;
}

std::string SpmModel::text(int id) const {
  const std::string_view piece = tables_.vocabulary.piece(id);
  if (stands_for_itself(id)) return std::string(piece);
  if (kind(id) == PieceKind::kControl) return {};
  if (kind(id) == PieceKind::kByte) {
    if (const auto byte = spelled_byte(piece)) return std::string(1, static_cast<char>(*byte));
  }
  if (!tables_.marks_spaces) return std::string(piece);
  std::string text;
  for (std::size_t at = 0; at < piece.size();) {
    const std::size_t end = std::min(piece.find(kSpaceMark, at), piece.size());
    text.append(piece.substr(at, end - at));
    if (end < piece.size()) text.push_back(' ');
    at = end + kSpaceMark.size();
  }
  return text;
}

bool SpmModel::is_special(int id) const {
  if (!vocabulary().has(id)) return false;
  return added_.is_special(id) || kind(id) == PieceKind::kControl || kind(id) == PieceKind::kUnknown;
}

std::optional<int> SpmModel::bos() const {
  if (tables_.prefix.empty()) return std::nullopt;
  return tables_.prefix.front();
}

bool SpmModel::drops_space(int previous, int id) const {
  if (tables_.space_before == SpaceBefore::kNever || stands_for_itself(id)) return false;
  if (previous == kTextStart || (previous >= 0 && previous == bos())) return true;
  return tables_.space_before != SpaceBefore::kFirstIfMissing && vocabulary().has(previous) &&
         stands_for_itself(previous);
}

}  // namespace kvasir
