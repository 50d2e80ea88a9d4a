// How each name in `tokenizer.ggml.pre` splits a text. The expected pieces are worked out from the patterns by hand.
#include "token/files/gguf_pre.h"

#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "token/byte_level.h"

namespace kvasir {
namespace {

using testing::ElementsAreArray;
using testing::HasSubstr;
using Names = std::vector<std::string>;
using Pieces = std::vector<std::string>;

Pieces pieces(const std::string& name, std::string_view text) {
  const auto pre = find_pre(name);
  EXPECT_TRUE(pre) << name;
  if (!pre) return {};
  const auto cutter = PreTokenizer::make((*pre)->cuts);
  EXPECT_TRUE(cutter) << name << ": " << cutter.error().message();
  if (!cutter) return {};
  PreTokenizer::Scratch scratch(*cutter);
  Pieces out;
  const auto done = cutter->split(text, scratch, [&](std::string_view piece) {
    out.emplace_back(piece);
    return Result<void>();
  });
  EXPECT_TRUE(done) << name;
  return out;
}

void expect_pieces(const Names& names, std::string_view text, const Pieces& expected) {
  for (const std::string& name : names) EXPECT_THAT(pieces(name, text), ElementsAreArray(expected)) << name;
}

// The names that the error for an unknown name lists.
Names known() {
  const std::string text = find_pre("no such name").error().what;
  Names names;
  for (std::size_t at = text.find("known: ") + 7; at < text.size();) {
    const std::size_t end = std::min(text.find(", ", at), text.size());
    names.push_back(text.substr(at, end - at));
    at = end + 2;
  }
  return names;
}

unsigned flags(const std::string& name) { return find_pre(name).value()->flags; }

const Names kGpt2Names = {"gpt-2",  "phi-2",    "exaone4", "jais", "a.x-4.0",    "gigachat",
                          "mellum", "trillion", "olmo",    "mpt",  "modern-bert"};
const Names kDigitNames = {"smollm",    "starcoder",  "refact",  "exaone",
                           "codeshell", "minerva-7b", "mellum2", "command-r"};
const Names kLlama3Names = {"llama-bpe", "llama3", "llama-v3",  "lfm2", "falcon3",    "falcon-h1",
                            "pixtral",   "dbrx",   "smaug-bpe", "glm4", "chatglm-bpe"};
const Names kQwen2Names = {"qwen2", "deepseek-r1-qwen", "megrez", "stablelm2", "hunyuan", "solar-open", "grok-2"};
const Names kGpt4oNames = {"gpt-4o", "llama4", "minimax-m2"};
const Names kDeepSeekV3Names = {"deepseek-v3", "hunyuan-dense", "joyai-llm"};

TEST(GgufPre, EveryNameIsThereOnceAndItsPatternsCompile) {
  const Names names = known();
  EXPECT_EQ(names.front(), "gpt-2");
  EXPECT_EQ(names.back(), "deepseek-llm");
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
  EXPECT_EQ(names.size(), kGpt2Names.size() + kDigitNames.size() + kLlama3Names.size() + kQwen2Names.size() +
                              kGpt4oNames.size() + kDeepSeekV3Names.size() + 5);
  for (const std::string& name : names) EXPECT_FALSE(pieces(name, "a b").empty()) << name;
}

TEST(GgufPre, Gpt2AndItWithSingleDigits) {
  expect_pieces(kGpt2Names, "I'M I'm 123abc  !", {"I", "'", "M", " I", "'m", " 123", "abc", " ", " !"});
  expect_pieces(kDigitNames, "I'm 12a", {"I", "'m", " ", "1", "2", "a"});
  expect_pieces({"falcon"}, "a<b1234", {"a", "<", "b", "123", "4"});
}

TEST(GgufPre, Llama3AndQwen2DifferInTheirDigits) {
  expect_pieces(kLlama3Names, "HE'S1234 (x\n\n y", {"HE", "'S", "123", "4", " (", "x", "\n\n", " y"});
  expect_pieces(kQwen2Names, "HE'S1234 (x\n\n y", {"HE", "'S", "1", "2", "3", "4", " (", "x", "\n\n", " y"});
}

TEST(GgufPre, Qwen35KeepsMarksWithTheirLetters) {
  expect_pieces({"qwen2"}, "\u0E01\u0E47\u0E32", {"\u0E01", "\u0E47\u0E32"});
  expect_pieces({"qwen35"}, "\u0E01\u0E47\u0E32", {"\u0E01\u0E47\u0E32"});
  expect_pieces({"qwen2"}, "!!\u0301", {"!!\u0301"});
  expect_pieces({"qwen35"}, "!!\u0301", {"!!", "\u0301"});
  expect_pieces({"qwen35"}, "it'LL 12\n x", {"it", "'LL", " ", "1", "2", "\n", " x"});
}

TEST(GgufPre, Gpt4oCutsWhereCaseChangesAndKeepsContractions) {
  expect_pieces(kGpt4oNames, "camelCaseHTML's 1234//\nX", {"camel", "Case", "HTML's", " ", "123", "4", "//\n", "X"});
  expect_pieces(kGpt4oNames, "don'T we\u0301Go", {"don'T", " we\u0301", "Go"});
  expect_pieces({"tekken"}, "camelCase's12/\n", {"camel", "Case", "'s", "1", "2", "/\n"});
}

TEST(GgufPre, DeepSeekV3CutsDigitsThenHanAndKana) {
  expect_pieces(kDeepSeekV3Names, "abc12345x\u6F22\u5B57\u30AB\u30CA!word ?!\n  z",
                {"abc", "123", "45", "x", "\u6F22\u5B57\u30AB\u30CA", "!word", " ?!\n", " ", " z"});
  expect_pieces(kDeepSeekV3Names, "\uD55C\u0E01\u0E47-\u00E9", {"\uD55C\u0E01\u0E47", "-", "\u00E9"});
}

TEST(GgufPre, DeepSeekCoder) {
  expect_pieces({"deepseek-coder"}, "if x12 :\n\tfoo\u6F22\u5B57! +",
                {"if", " x", "1", "2", " :", "\n", "\tfoo", "\u6F22\u5B57", "!", " +"});
  expect_pieces({"deepseek-coder"}, "\r\n\u00BC", {"\r", "\n", "\u00BC"});
}

TEST(GgufPre, DeepSeekLlmsLettersAreAList) {
  // U+00AA is a letter without case, U+3001 a mark of the list, U+0E01 in no list.
  expect_pieces({"deepseek-llm"}, "a+b\u00AA \u0434\u0430  \u6F2212\n",
                {"a", "+", "b", "\u00AA", " \u0434\u0430", "  ", "\u6F22", "1", "2", "\n"});
  expect_pieces({"deepseek-llm"}, "\u0E01\u3001\u0E01  ", {"\u0E01", "\u3001", "\u0E01", "  "});
  expect_pieces({"deepseek-llm"}, "\U00010400\U0001E943\U0001E944", {"\U00010400\U0001E943", "\U0001E944"});
}

TEST(GgufPre, Flags) {
  using enum PreTokenization::Flags;
  for (const std::string& name : known()) {
    const bool nfc =
        std::set<std::string>{"olmo", "mpt", "modern-bert", "qwen2", "deepseek-r1-qwen", "megrez", "command-r"}
            .contains(name);
    const bool llama3 =
        std::set<std::string>{"llama-bpe", "llama3", "llama-v3", "lfm2", "falcon3", "falcon-h1", "pixtral", "tekken"}
            .contains(name);
    const bool gpt4o = name == "gpt-4o" || name == "llama4";
    EXPECT_EQ(flags(name), (nfc ? kNfc : 0u) | (llama3 ? kIgnoreMerges | kAddBos : 0u) | (gpt4o ? kIgnoreMerges : 0u))
        << name;
  }
}

TEST(GgufPre, TheNameOfEachRuleIsFoundAgain) {
  for (const std::string& name : known()) {
    const PreTokenization& pre = *find_pre(name).value();
    ByteLevelTables tables;
    tables.cuts = pre.cuts;
    tables.nfc = pre.has(PreTokenization::kNfc);
    tables.ignore_merges = pre.has(PreTokenization::kIgnoreMerges);
    EXPECT_EQ(find_pre_name(tables), pre.names.front()) << name;
    tables.cuts.push_back({"x", false});
    EXPECT_EQ(find_pre_name(tables), "") << name;
  }
}

TEST(GgufPre, OthersAreRefused) {
  for (const char* name : {"default", "", "gpt2", "bloom", "kimi-k2", "llama-bpe "}) {
    const auto pre = find_pre(name);
    ASSERT_FALSE(pre) << name;
    EXPECT_EQ(pre.error().kind, Error::unsupported);
    EXPECT_THAT(pre.error().message(), HasSubstr("tokenizer.ggml.pre"));
  }
}

}  // namespace
}  // namespace kvasir
