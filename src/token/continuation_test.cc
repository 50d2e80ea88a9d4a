// encode_after() against the encoder's ids of the whole text.
#include <kvasir/tokenizer.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temp_files.h"
#include "tests/support/test_files.h"

namespace kvasir {
namespace {

using Ids = std::vector<int>;

std::shared_ptr<const Tokenizer> opened(const char* model) {
  const auto tokenizer = Tokenizer::from_json(std::string(KVASIR_SOURCE_DIR "/models/") + model + "/tokenizer.json");
  EXPECT_TRUE(tokenizer);
  return tokenizer ? *tokenizer : nullptr;
}

Ids joined(Ids a, const Ids& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(Continuation, IsTheRestOfTheWholeTextsIds) {
  const auto tokenizer = opened("tales");
  const std::string before = "User: Who are you?\nAssistant: a fox", text = "\nUser: And then?\nAssistant:";
  const Ids ids = *tokenizer->encode(before), whole = *tokenizer->encode(before + text);
  EXPECT_EQ(joined(ids, *encode_after(*tokenizer, ids, text)), whole);
  EXPECT_EQ(*encode_after(*tokenizer, {}, text), *tokenizer->encode(text)) << "the start of a text";
  EXPECT_EQ(*encode_after(*tokenizer, ids, ""), Ids());
}

// One id per letter, as no encoder returns: these ids are kept, and the rest is encoded as after any text.
TEST(Continuation, LeavesOtherIdsAsTheyAre) {
  const auto tokenizer = opened("tales");
  Ids letters;
  for (const char c : std::string("fox")) letters.push_back(tokenizer->encode(std::string(1, c), false)->at(0));
  ASSERT_NE(letters, *tokenizer->encode("fox"));
  const Ids rest = *encode_after(*tokenizer, letters, "\nUser: And then?");
  const Ids whole = *tokenizer->encode("a\nUser: And then?", false), a = *tokenizer->encode("a", false);
  EXPECT_EQ(joined(a, rest), whole);
  EXPECT_EQ(*tokenizer->decode(joined(letters, rest)), "fox\nUser: And then?");
}

// A token would cross the seam between "f" and "ox".
TEST(Continuation, KeepsTheTextWhereATokenWouldReachOverTheSeam) {
  const auto tokenizer = opened("tales");
  const Ids before = *tokenizer->encode("the f", false);
  const Ids rest = *encode_after(*tokenizer, before, "ox ran");
  EXPECT_EQ(*tokenizer->decode(joined(before, rest)), "the fox ran");
}

TEST(Continuation, DataBehindTheSeamStaysText) {
  const auto tokenizer = opened("tales");
  const std::string text = "<|endoftext|>say <|endoftext|>";
  const std::vector<TextSpan> data{{17, text.size()}}, shifted{{5 + 17, 5 + text.size()}};
  const Ids ids = *tokenizer->encode("a fox"), end = *tokenizer->encode("<|endoftext|>");
  const Ids rest = *encode_after(*tokenizer, ids, text, data);
  EXPECT_EQ(joined(ids, rest), *tokenizer->encode("a fox" + text, shifted));
  EXPECT_EQ(rest.front(), end.at(0));
  EXPECT_EQ(std::count(rest.begin(), rest.end(), end.at(0)), 1);
  // The same after ids that no encoder returns.
  const Ids letters{tokenizer->encode("f")->at(0), tokenizer->encode("o")->at(0), tokenizer->encode("x")->at(0)};
  EXPECT_EQ(*encode_after(*tokenizer, letters, text, data), rest);
}

TEST(Continuation, AReaderSeesNoControlTokens) {
  const auto tokenizer = opened("tales");
  const Ids ids = *tokenizer->encode("a fox", false);
  int special = -1;
  for (int id = 0; id < tokenizer->vocab_size() && special < 0; ++id)
    if (tokenizer->is_special(id)) special = id;
  ASSERT_GE(special, 0);
  EXPECT_EQ(visible_text(tokenizer, joined({special}, ids)), "a fox");
  EXPECT_EQ(visible_text(tokenizer, joined(ids, {special})), "a fox");
}

}  // namespace
}  // namespace kvasir
