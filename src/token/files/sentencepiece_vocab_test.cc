// Real and hand-made .model files against libsentencepiece itself, and hostile ones.
#include <sentencepiece_processor.h>

#include <chrono>
#include <limits>
#include <random>
#include <sstream>

#include <gmock/gmock.h>
#include <kvasir/tokenizer.h>

#include "tests/support/proto_writer.h"
#include "tests/support/random_text.h"
#include "tests/support/test_files.h"

namespace kvasir {
namespace {

using testing::HasSubstr;
using token_test::bytes_field;
using token_test::data_folder;
using token_test::ProtoParts;
using token_test::ProtoPiece;
using token_test::random_text;
using token_test::TempFile;
using token_test::varint_field;
using Ids = std::vector<int>;
using TokenizerPtr = std::shared_ptr<const Tokenizer>;

const char* const kMistral[] = {"tokenizer.model.v1", "mistral_instruct_tokenizer_240323.model.v3"};

Result<TokenizerPtr> load(std::string_view bytes) { return Tokenizer::from_sentencepiece(TempFile(bytes).path()); }

std::string refusal(std::string_view bytes) {
  const auto tokenizer = load(bytes);
  return tokenizer ? "accepted" : tokenizer.error().message();
}
std::string refusal(const ProtoParts& parts) { return refusal(parts.text()); }

// A model and the library's own reading of it.
struct Both {
  TokenizerPtr ours;
  sentencepiece::SentencePieceProcessor theirs;

  void expect_equal(const std::string& text) const {
    const auto ids = ours->encode(text, false);
    ASSERT_TRUE(ids) << ids.error().message();
    ASSERT_EQ(*ids, theirs.EncodeAsIds(text)) << quote(text);
  }
};

void open(const std::string& bytes, Both& both) {
  const auto ours = load(bytes);
  ASSERT_TRUE(ours) << ours.error().message();
  both.ours = *ours;
  ASSERT_TRUE(both.theirs.LoadFromSerializedProto(bytes).ok());
}

void expect_random_texts_equal(int rounds) {
  for (const char* name : kMistral) {
    const auto path = data_folder() / "tokenizers/mistral" / name;
    if (!std::filesystem::exists(path)) GTEST_SKIP() << "outside data folder is absent";
    Both both;
    open(token_test::read(path), both);
    std::mt19937 random(17);
    for (int round = 0; round < rounds && !testing::Test::HasFailure(); ++round) {
      std::string text = random_text(random, 30);
      if (round % 10 == 0) text += "\u2581" + text;  // the mark itself, which both read as a space
      both.expect_equal(text);
    }
  }
}

TEST(SentencePieceVocab, RandomTextsEqualTheLibrarys) { expect_random_texts_equal(1000); }
TEST(SlowSentencePieceVocab, TenThousandRandomTextsEqualTheLibrarys) { expect_random_texts_equal(10000); }

TEST(SlowSentencePieceVocab, FilesOfTextEqualTheLibrarys) {
  for (const char* name : kMistral) {
    const auto path = data_folder() / "tokenizers/mistral" / name;
    if (!std::filesystem::exists(path)) GTEST_SKIP() << "outside data folder is absent";
    Both both;
    open(token_test::read(path), both);
    for (const char* book : {"wiki.test.raw", "tinystories_197K.txt", "prompts-20.txt"}) {
      const std::string text = token_test::read(data_folder() / "text" / book);
      ASSERT_FALSE(text.empty());
      ASSERT_EQ(both.ours->encode(text, false).value() == both.theirs.EncodeAsIds(text), true) << book;
      std::istringstream lines(text);
      for (std::string line; std::getline(lines, line);) both.expect_equal(line);
    }
  }
}

// Generous bounds: they catch a quadratic algorithm, not a slow machine.
TEST(SlowSentencePieceVocab, AMegabyteOfWordsAndOfOneWord) {
  const auto path = data_folder() / "tokenizers/mistral" / kMistral[0];
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "outside data folder is absent";
  const auto tokenizer = Tokenizer::from_sentencepiece(path).value();
  std::mt19937 random(3);
  std::string word(1 << 20, 'a');
  for (char& c : word) c = static_cast<char>('a' + random() % 26);
  const std::string words = token_test::read(data_folder() / "text/wiki.test.raw").substr(0, 1 << 20);
  for (const std::string& text : {words, word, std::string(1 << 20, ' '), std::string(1 << 20, '\xFF')}) {
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text).value()).value() == text, true);
    EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 5);
  }
}

TEST(SentencePieceVocab, MistralRoundTripsAndStartsWithBos) {
  const auto path = data_folder() / "tokenizers/mistral" / kMistral[0];
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "outside data folder is absent";
  const auto tokenizer = Tokenizer::from_sentencepiece(path).value();
  EXPECT_EQ(tokenizer->vocab_size(), 32000);
  EXPECT_EQ(tokenizer->bos(), 1);
  EXPECT_EQ(tokenizer->unk(), 0);
  EXPECT_EQ(tokenizer->encode("").value(), Ids{1});
  std::mt19937 random(23);
  for (int round = 0; round < 1000; ++round) {
    const std::string text = random_text(random, 30);
    if (text.find("\u2581") != text.npos) continue;
    ASSERT_EQ(tokenizer->decode(tokenizer->encode(text).value()).value(), text);
    ASSERT_EQ(tokenizer->decode(tokenizer->encode(text, false).value()).value(), text);
  }
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("a\xFF\xE2\x82").value()).value(), "a\xFF\xE2\x82");
}

// A random vocabulary over a few characters in which pieces of every kind overlap and scores are often equal.
ProtoParts random_parts(std::mt19937& random, bool bytes, bool unused) {
  const std::string letters[] = {"a", "b", "\u00E9", "\u2581", "\U0001F600"};
  ProtoParts parts;
  parts.pieces = {{"<unk>", 0, 2}, {"<s>", 0, 3}, {"</s>", 0, 3}};
  for (int byte = 0; bytes && byte < 256; ++byte) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", static_cast<unsigned>(byte));
    parts.pieces.push_back({name, 0, 6});
  }
  for (int count = 0; count < 40; ++count) {
    ProtoPiece piece;
    for (auto length = 1 + random() % 5; length > 0; --length) piece.piece += letters[random() % 5];
    const auto same = [&](const ProtoPiece& other) { return other.piece == piece.piece; };
    if (std::any_of(parts.pieces.begin(), parts.pieces.end(), same)) continue;
    piece.score = -static_cast<float>(random() % 8);
    const auto kind = random() % 10;
    piece.type = kind == 0 ? 4 : kind < 3 && unused ? 5 : 1;
    parts.pieces.push_back(piece);
  }
  if (bytes) parts.trainer += varint_field(35, 1);
  if (random() % 2 == 0) parts.normalizer = varint_field(3, 0) + varint_field(4, 0);
  return parts;
}

TEST(SentencePieceVocab, RandomVocabulariesEqualTheLibrarys) {
  std::mt19937 random(31);
  const std::string letters[] = {"a", "b", "\u00E9", " ", "\U0001F600", "z", "<s>"};
  for (int round = 0; round < 200; ++round) {
    Both both;
    open(random_parts(random, round % 2 == 0, round % 4 < 2).text(), both);
    for (int i = 0; i < 20; ++i) {
      std::string text;
      for (auto length = random() % 20; length > 0; --length) text += letters[random() % 7];
      ASSERT_NO_FATAL_FAILURE(both.expect_equal(text)) << "vocabulary " << round;
    }
  }
}

ProtoParts small() {
  ProtoParts parts;
  parts.pieces = {{"<unk>", 0, 2}, {"<s>", 0, 3}, {"\u2581", -3}, {"a", -2}, {"\u2581a", -1}};
  return parts;
}

TEST(SentencePieceVocab, WhatItCannotHonourIsRefusedByName) {
  EXPECT_EQ(refusal(small()), "accepted");
  const auto trainer = [](const std::string& fields) {
    ProtoParts parts = small();
    parts.trainer += fields;
    return refusal(parts);
  };
  EXPECT_THAT(trainer(varint_field(3, 1)), HasSubstr("UNIGRAM"));
  EXPECT_THAT(trainer(varint_field(3, 3)), HasSubstr("WORD"));
  EXPECT_THAT(trainer(varint_field(3, 4)), HasSubstr("CHAR"));
  EXPECT_THAT(trainer(varint_field(3, 9)), HasSubstr("model_type 9"));
  EXPECT_THAT(trainer(varint_field(24, 1)), HasSubstr("treat_whitespace_as_suffix"));
  EXPECT_THAT(trainer(varint_field(35, 1)), HasSubstr("byte"));
  const auto normalizer = [](const std::string& fields) {
    ProtoParts parts = small();
    parts.normalizer += fields;
    return refusal(parts);
  };
  EXPECT_THAT(normalizer(bytes_field(2, "map")), HasSubstr("precompiled_charsmap"));
  EXPECT_THAT(normalizer(varint_field(4, 1)), HasSubstr("remove_extra_whitespaces"));
  EXPECT_THAT(normalizer(varint_field(5, 0)), HasSubstr("escape_whitespaces"));
  ProtoParts bare = small();
  bare.trainer.clear();
  EXPECT_THAT(refusal(bare), HasSubstr("UNIGRAM"));
  bare = small();
  bare.normalizer.clear();
  EXPECT_THAT(refusal(bare), HasSubstr("remove_extra_whitespaces"));
}

TEST(SentencePieceVocab, PiecesThatContradictAreRefused) {
  const auto with = [](const ProtoPiece& piece) {
    ProtoParts parts = small();
    parts.pieces.push_back(piece);
    return refusal(parts);
  };
  EXPECT_THAT(with({"", 0, 1}), HasSubstr("empty"));
  EXPECT_THAT(with({std::string("b\0c", 3), 0, 1}), HasSubstr("zero byte"));
  EXPECT_THAT(with({std::string(8000, 'x'), 0, 1}), HasSubstr("8000 bytes"));
  EXPECT_THAT(with({"a", 0, 1}), HasSubstr("two ids"));
  EXPECT_THAT(with({"b", std::nanf(""), 1}), HasSubstr("not finite"));
  EXPECT_THAT(with({"b", std::numeric_limits<float>::infinity(), 1}), HasSubstr("not finite"));
  EXPECT_THAT(with({"b", 0, 0}), HasSubstr("type 0"));
  EXPECT_THAT(with({"b", 0, 7}), HasSubstr("type 7"));
  EXPECT_THAT(with({"<0xZZ>", 0, 6}), HasSubstr("spells no byte"));
  EXPECT_THAT(with({"<0x0A>", 0, 6}), HasSubstr("libsentencepiece"));
  EXPECT_THAT(with({"<unk2>", 0, 2}), HasSubstr("unk"));
  ProtoParts none = small();
  none.pieces[0].type = 1;
  EXPECT_THAT(refusal(none), HasSubstr("unk"));
  none.pieces.clear();
  EXPECT_THAT(refusal(none), HasSubstr("no pieces"));
}

TEST(SentencePieceVocab, SelfTestsAndDenormalizersAreLeftOut) {
  ProtoParts parts = small();
  parts.more = bytes_field(4, bytes_field(1, bytes_field(1, "a") + bytes_field(2, "wrong"))) +
               bytes_field(5, bytes_field(2, "\xFF\xFF\xFF\xFF")) + bytes_field(300, "extension");
  EXPECT_EQ(refusal(parts), "accepted");
}

TEST(SentencePieceVocab, BytesThatAreNoProtobuf) {
  EXPECT_THAT(refusal(""), HasSubstr("no pieces"));
  EXPECT_THAT(refusal("\x0A\x7F"), HasSubstr("ends inside"));
  EXPECT_THAT(refusal(std::string(11, '\xFF')), HasSubstr("64 bits"));
  EXPECT_THAT(refusal(std::string("\x0B\x0C", 2)), HasSubstr("wire type 3"));
  EXPECT_THAT(refusal(std::string("\x02\x00", 2)), HasSubstr("field number 0"));
  EXPECT_THAT(refusal(varint_field(1, 5)), HasSubstr("wire type 0"));
  EXPECT_THAT(refusal("\x0A\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01"), HasSubstr("ends inside"));
}

TEST(SentencePieceVocab, TruncatedAndMutatedFilesNeverCrash) {
  std::mt19937 random(41);
  const std::string whole = random_parts(random, true, true).text();
  for (std::size_t length = 0; length < whole.size(); length += 1 + length / 32) refusal(whole.substr(0, length));
  for (int round = 0; round < 2000; ++round) {
    std::string bytes = whole;
    for (int i = 0; i < 3; ++i) bytes[random() % bytes.size()] = static_cast<char>(random() % 256);
    if (const auto tokenizer = load(bytes)) (void)(*tokenizer)->encode("ab \u00E9<s>\xFF");
  }
}

}  // namespace
}  // namespace kvasir
