// Hand-made vocabularies: merging by score and by rank, pieces of every kind, spaces, and what decoding drops.
#include "token/spm.h"
#include "token/tokenizer_impl.h"

#include <gmock/gmock.h>
#include <kvasir/tokenizer.h>

namespace kvasir {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using Ids = std::vector<int>;

struct Piece {
  std::string text;
  float score = 0;
  PieceKind kind = PieceKind::kNormal;
};

SpmTables parts_of(const std::vector<Piece>& pieces) {
  SpmTables tables;
  for (const Piece& piece : pieces) {
    EXPECT_TRUE(tables.vocabulary.add(piece.text, tables.vocabulary.size(), 1000));
    tables.scores.push_back(piece.score);
    tables.kinds.push_back(piece.kind);
    if (piece.kind == PieceKind::kUnknown) tables.unk = tables.vocabulary.size() - 1;
  }
  return tables;
}

std::shared_ptr<const Tokenizer> tokenizer_of(SpmTables tables) {
  auto model = SpmModel::make(std::move(tables));
  EXPECT_TRUE(model) << model.error().message();
  return make_tokenizer(std::move(*model));
}

Ids encode(const Tokenizer& tokenizer, std::string_view text) {
  const auto ids = tokenizer.encode(text, false);
  EXPECT_TRUE(ids) << ids.error().message();
  return ids.value_or(Ids{});
}

std::string hex(int byte) {
  char name[8];
  std::snprintf(name, sizeof name, "<0x%02X>", static_cast<unsigned>(byte));
  return name;
}

constexpr auto kUnknown = PieceKind::kUnknown;
constexpr auto kControl = PieceKind::kControl;
constexpr auto kUserDefined = PieceKind::kUserDefined;
constexpr auto kUnused = PieceKind::kUnused;

TEST(Spm, PiecesAreFoundByTheSpanThatTheyCover) {
  // Neither x nor y has a piece, yet "xy" and "xya" are pieces.
  const auto tokenizer = tokenizer_of(parts_of({{"<unk>", 0, kUnknown}, {"xy", -1}, {"a", -2}, {"xya", -3}}));
  EXPECT_THAT(encode(*tokenizer, "xy"), ElementsAre(1));
  EXPECT_THAT(encode(*tokenizer, "axyaxy"), ElementsAre(2, 3, 1));
  EXPECT_THAT(encode(*tokenizer, "xxy"), ElementsAre(0, 1));
}

TEST(Spm, UnusedPiecesAreMergedThroughAndTakenApart) {
  const auto tokenizer = tokenizer_of(parts_of(
      {{"<unk>", 0, kUnknown}, {"a", -9}, {"b", -9}, {"c", -9}, {"ab", -1, kUnused}, {"abc", -2}, {"bc", -3}}));
  EXPECT_THAT(encode(*tokenizer, "abc"), ElementsAre(5));
  EXPECT_THAT(encode(*tokenizer, "aba"), ElementsAre(1, 2, 1));
  EXPECT_THAT(encode(*tokenizer, "bc"), ElementsAre(6));
}

TEST(Spm, UserDefinedPiecesAreSymbolsOfTheirOwn) {
  const auto tokenizer = tokenizer_of(parts_of({{"<unk>", 0, kUnknown},
                                                {"a", -9},
                                                {"b", -9},
                                                {"ab", -1},
                                                {"b<", -2},
                                                {"<x>", 0, kUserDefined},
                                                {"<x>a", 0, kUserDefined},
                                                {"b<x>", -1}}));
  EXPECT_THAT(encode(*tokenizer, "b<x>"), ElementsAre(2, 5));
  EXPECT_THAT(encode(*tokenizer, "<x>ab<x"), ElementsAre(6, 4, 0));
  EXPECT_EQ(tokenizer->decode(Ids{6, 2}).value(), "<x>ab");
}

TEST(Spm, WhatHasNoPieceIsBytesThenUnkThenAnError) {
  std::vector<Piece> pieces = {{"<unk>", 0, kUnknown}, {"a", -1}};
  SpmTables fused = parts_of(pieces);
  fused.fuse_unk = true;
  EXPECT_THAT(encode(*tokenizer_of(std::move(fused)), "a\u00E9za\u00E9"), ElementsAre(1, 0, 1, 0));
  EXPECT_THAT(encode(*tokenizer_of(parts_of(pieces)), "a\u00E9za\u00E9"), ElementsAre(1, 0, 0, 1, 0));
  for (int byte = 0; byte < 256; ++byte) pieces.push_back({hex(byte), 0, PieceKind::kByte});
  SpmTables bytes = parts_of(pieces);
  bytes.byte_fallback = true;
  const auto tokenizer = tokenizer_of(std::move(bytes));
  EXPECT_THAT(encode(*tokenizer, "a\u00E9\xFF"), ElementsAre(1, 2 + 0xC3, 2 + 0xA9, 2 + 0xFF));
  EXPECT_THAT(encode(*tokenizer, "<0x0A>a").size(), 7u);  // the text itself, not the byte
  EXPECT_EQ(tokenizer->decode(encode(*tokenizer, "<0x0A>\xE2\x82")).value(), "<0x0A>\xE2\x82");
}

TEST(Spm, ErrorsNameTheByteAndItsOffsetInTheText) {
  SpmTables tables = parts_of({{"\u2581", -1}, {"a", -1}, {"<s>", 0, kControl}});
  tables.space_before = SpaceBefore::kEvery;
  tables.added.push_back(AddedToken{.content = "<s>", .id = 2, .special = true});
  const auto tokenizer = tokenizer_of(std::move(tables));
  EXPECT_THAT(tokenizer->encode("a a<s> a\u00E9").error().what, AllOf(HasSubstr("0xC3"), HasSubstr("offset 8")));
  EXPECT_THAT(tokenizer->encode("z").error().what, AllOf(HasSubstr("0x7A"), HasSubstr("offset 0")));
}

// 0 unk, 1 "▁", 2 a, 3 "▁a", 4 "▁▁", 5 <s> (added, special), 6 "a▁" if `reaching`.
SpmTables spaced(SpaceBefore space_before, bool reaching = false) {
  std::vector<Piece> pieces = {{"<unk>", 0, kUnknown}, {"\u2581", -9},       {"a", -9},
                               {"\u2581a", -1},        {"\u2581\u2581", -2}, {"<s>", 0, kControl}};
  if (reaching) pieces.push_back({"a\u2581", -0.5});
  SpmTables tables = parts_of(pieces);
  tables.added.push_back(AddedToken{.content = "<s>", .id = 5, .special = true});
  tables.space_before = space_before;
  return tables;
}

TEST(Spm, SpacesBeforeAText) {
  const auto never = tokenizer_of(spaced(SpaceBefore::kNever));
  EXPECT_THAT(encode(*never, "a a<s>a"), ElementsAre(2, 3, 5, 2));
  const auto every = tokenizer_of(spaced(SpaceBefore::kEvery));
  EXPECT_THAT(encode(*every, "a a<s>a<s> a"), ElementsAre(3, 3, 5, 3, 5, 1, 3));
  EXPECT_THAT(encode(*every, ""), ElementsAre());
  EXPECT_THAT(encode(*every, "<s><s>"), ElementsAre(5, 5));
  const auto missing = tokenizer_of(spaced(SpaceBefore::kEveryIfMissing));
  EXPECT_THAT(encode(*missing, "a<s>a<s> a"), ElementsAre(3, 5, 3, 5, 3));
  EXPECT_THAT(encode(*missing, "\u2581a"), ElementsAre(3));
  const auto first = tokenizer_of(spaced(SpaceBefore::kFirstIfMissing));
  EXPECT_THAT(encode(*first, "a<s>a"), ElementsAre(3, 5, 2));
  EXPECT_THAT(encode(*first, " a"), ElementsAre(3));
  EXPECT_THAT(encode(*first, "<s>a"), ElementsAre(5, 2));
}

TEST(Spm, PiecesMayReachOverTheStartOfAWord) {
  EXPECT_THAT(encode(*tokenizer_of(spaced(SpaceBefore::kNever, true)), "a a  a"), ElementsAre(6, 6, 3));
  EXPECT_THAT(encode(*tokenizer_of(spaced(SpaceBefore::kNever)), "a a  a"), ElementsAre(2, 3, 1, 3));
  EXPECT_THAT(encode(*tokenizer_of(spaced(SpaceBefore::kNever)), "a   a"), ElementsAre(2, 4, 3));
  SpmTables cut = spaced(SpaceBefore::kNever, true);
  cut.cuts_at_spaces = true;
  EXPECT_THAT(encode(*tokenizer_of(std::move(cut)), "a   a"), ElementsAre(2, 1, 1, 3));
}

TEST(Spm, DecodingDropsTheEncodersOwnSpaces) {
  const auto every = tokenizer_of(spaced(SpaceBefore::kEvery));
  for (const std::string text : {"a", " a", "  a ", "a<s>a", "a <s> a", "<s>a<s><s>  a", ""}) {
    EXPECT_EQ(every->decode(encode(*every, text)).value(), text);
  }
  EXPECT_EQ(every->token_text(3), " a");
  EXPECT_EQ(tokenizer_of(spaced(SpaceBefore::kNever))->decode(Ids{3}).value(), " a");
  EXPECT_EQ(tokenizer_of(spaced(SpaceBefore::kFirstIfMissing))->decode(Ids{3, 5, 3}).value(), "a<s> a");
  StreamDecoder stream(every);
  EXPECT_EQ(stream.push(3), " a");  // the stream may have begun in mid-text
  EXPECT_EQ(stream.push(5), "<s>");
  EXPECT_EQ(stream.push(3), "a");
}

TEST(Spm, ControlPiecesThatNoTextBecomesAreEmpty) {
  SpmTables tables = spaced(SpaceBefore::kEvery);
  tables.added.clear();
  tables.prefix = {5};
  const auto tokenizer = tokenizer_of(std::move(tables));
  EXPECT_THAT(tokenizer->encode("a").value(), ElementsAre(5, 3));
  EXPECT_EQ(tokenizer->decode(Ids{5, 3}).value(), "a");
  EXPECT_EQ(tokenizer->bos(), 5);
  EXPECT_TRUE(tokenizer->is_special(5));
  EXPECT_TRUE(tokenizer->is_special(0));
  EXPECT_FALSE(tokenizer->is_special(3));
  EXPECT_FALSE(tokenizer->is_special(-1));
}

TEST(Spm, BosOnceWhereTheTextHasIt) {
  SpmTables tables = spaced(SpaceBefore::kEvery);
  tables.prefix = {5};
  const auto tokenizer = tokenizer_of(std::move(tables));
  EXPECT_THAT(tokenizer->encode("<s>a").value(), ElementsAre(5, 3));
  EXPECT_THAT(tokenizer->encode("").value(), ElementsAre(5));
}

TEST(Spm, NormalisedAddedTokensAreFoundAfterTheSpaceIsPut) {
  SpmTables tables = spaced(SpaceBefore::kEvery);
  tables.added[0].normalized = true;
  const auto tokenizer = tokenizer_of(std::move(tables));
  // "▁<s>" is looked for in "▁a▁<s>a<s>": Hugging Face's own reading of such a file.
  EXPECT_THAT(encode(*tokenizer, "a <s>a"), ElementsAre(3, 5, 2));
  EXPECT_THAT(encode(*tokenizer, "<s>"), ElementsAre(5));
}

TEST(Spm, SpansLongerThanEveryPieceTakeLinearithmicTime) {
  const auto tokenizer = tokenizer_of(parts_of({{"<unk>", 0, kUnknown}, {"a", -9}, {"aa", -1}, {"aaaa", -2}}));
  EXPECT_EQ(encode(*tokenizer, std::string(1 << 20, 'a')).size(), std::size_t{1} << 18);
}

}  // namespace
}  // namespace kvasir
