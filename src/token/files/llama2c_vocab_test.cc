// Hand-made tokenizer.bin files: the format, merging by score, and hostile files.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <random>

#include <gmock/gmock.h>
#include <kvasir/tokenizer.h>

#include "tests/support/test_files.h"

namespace kvasir {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using token_test::TempFile;
using Ids = std::vector<int>;

struct Piece {
  std::string text;
  float score = 0;
};

std::string bytes_of(const std::vector<Piece>& pieces) {
  std::string out;
  const auto put = [&out](auto value) {
    char raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);
    out.append(raw, sizeof value);
  };
  put(std::uint32_t{7});
  for (const Piece& piece : pieces) {
    put(piece.score);
    put(static_cast<std::uint32_t>(piece.text.size()));
    out += piece.text;
  }
  return out;
}

// 0..2 control, 3..258 bytes, then 259 " ", 260 a, 261 b, 262 c, 263 ab, 264 bc, 265 aa, 266 " a".
std::vector<Piece> small() {
  std::vector<Piece> pieces = {{"<unk>"}, {"\n<s>\n"}, {"\n</s>\n"}};
  for (int byte = 0; byte < 256; ++byte) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", static_cast<unsigned>(byte));
    pieces.push_back({name});
  }
  for (const char* one : {" ", "a", "b", "c"}) pieces.push_back({one, -100});
  pieces.insert(pieces.end(), {{"ab", -2}, {"bc", -1}, {"aa", -3}, {" a", -4}});
  return pieces;
}

Result<std::shared_ptr<const Tokenizer>> load(std::string_view bytes, int vocab_size) {
  return Tokenizer::from_llama2c(TempFile(bytes).path(), vocab_size);
}

std::shared_ptr<const Tokenizer> load(const std::vector<Piece>& pieces) {
  return load(bytes_of(pieces), static_cast<int>(pieces.size())).value();
}

TEST(Llama2cVocab, BestScoreFirstThenLeftmost) {
  const auto tokenizer = load(small());
  EXPECT_THAT(tokenizer->encode("abc").value(), ElementsAre(1, 266, 264));
  EXPECT_THAT(tokenizer->encode("aaa").value(), ElementsAre(1, 259, 265, 260));
  EXPECT_THAT(tokenizer->encode("ab", false).value(), ElementsAre(259, 263));
  EXPECT_THAT(tokenizer->encode("").value(), ElementsAre(1));
  EXPECT_EQ(tokenizer->bos(), 1);
  EXPECT_EQ(tokenizer->unk(), 0);
  EXPECT_TRUE(tokenizer->is_special(2));
  EXPECT_FALSE(tokenizer->is_special(3));
}

TEST(Llama2cVocab, BytesWithoutAPieceFallBack) {
  const auto tokenizer = load(small());
  EXPECT_THAT(tokenizer->encode("\u00E9", false).value(), ElementsAre(259, 3 + 0xC3, 3 + 0xA9));
  EXPECT_THAT(tokenizer->encode(std::string_view("\0", 1), false).value(), ElementsAre(259, 3));
  auto pieces = small();
  pieces.erase(pieces.begin() + 3, pieces.begin() + 259);
  EXPECT_THAT(load(pieces)->encode("ab\xFF\xFE", false).value(), ElementsAre(3, 7, 0));
}

TEST(Llama2cVocab, OneSpaceAtTheStartIsDropped) {
  const auto tokenizer = load(small());
  EXPECT_EQ(tokenizer->decode(Ids{1, 266, 264}).value(), "abc");
  EXPECT_EQ(tokenizer->decode(Ids{266, 266}).value(), "a a");
  EXPECT_EQ(tokenizer->token_text(266), " a");
  EXPECT_EQ(tokenizer->decode(Ids{1, 259, 259}).value(), " ");
  EXPECT_EQ(tokenizer->decode(Ids{1, 3 + 0xFF, 2}).value(), "\xFF");
  StreamDecoder stream(tokenizer);
  EXPECT_EQ(stream.push(1), "");
  EXPECT_EQ(stream.push(266), "a");
  EXPECT_EQ(stream.push(266), " a");
  StreamDecoder in_mid_text(tokenizer);
  EXPECT_EQ(in_mid_text.push(266), " a");
}

TEST(Llama2cVocab, PairsAtTheFloorNeverMerge) {
  auto pieces = small();
  pieces[263].score = -1e10f;
  EXPECT_THAT(load(pieces)->encode("bab", false).value(), ElementsAre(259, 261, 260, 261));
}

TEST(Llama2cVocab, EqualPiecesAreFoundByTheFirstId) {
  auto pieces = small();
  pieces.push_back({"ab", -9});
  const auto tokenizer = load(pieces);
  EXPECT_EQ(tokenizer->find("ab"), 263);
  EXPECT_EQ(tokenizer->token_text(267), "ab");
}

TEST(Llama2cVocab, HostileFilesAreRefused) {
  const std::string whole = bytes_of(small());
  const int count = static_cast<int>(small().size());
  for (std::size_t length = 0; length < whole.size(); length += 1 + length / 64) {
    EXPECT_THAT(load(whole.substr(0, length), count).error().message(), HasSubstr("ends inside token")) << length;
  }
  EXPECT_FALSE(load(whole, count + 1));
  EXPECT_THAT(load(whole, count - 1).error().message(), HasSubstr("follow"));
  EXPECT_FALSE(load(whole, 0));
  EXPECT_FALSE(load(whole, -5));
  EXPECT_FALSE(load(whole, std::numeric_limits<int>::max()));
  for (const float score : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    auto pieces = small();
    pieces[260].score = score;
    EXPECT_THAT(load(bytes_of(pieces), count).error().message(), HasSubstr("token 260"));
  }
  std::string past = whole;
  past.replace(8, 4, "\xFF\xFF\xFF\xFF");
  EXPECT_THAT(load(past, count).error().message(), HasSubstr("ends inside token 0"));
}

TEST(Llama2cVocab, RandomTextsRoundTrip) {
  const auto tokenizer = load(small());
  std::mt19937 random(13);
  for (int round = 0; round < 300; ++round) {
    std::string text(random() % 100, '\0');
    for (char& byte : text) byte = random() % 3 == 0 ? static_cast<char>(random() % 256) : " abc"[random() % 4];
    ASSERT_EQ(tokenizer->decode(tokenizer->encode(text).value()).value(), text);
  }
}

}  // namespace
}  // namespace kvasir
