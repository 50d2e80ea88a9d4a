// Tokenizers written as GGUF's arrays and read back: the same ids for any text; what GGUF cannot express is refused.
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <kvasir/tokenizer.h>

#include "tests/support/random_text.h"
#include "tests/support/test_files.h"
#include "token/byte_level.h"
#include "token/files/gguf_vocab.h"
#include "token/tokenizer_impl.h"

namespace kvasir {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using token_test::data_folder;
using token_test::JsonParts;
using token_test::random_text;
using token_test::TempFile;

using TokenizerPtr = std::shared_ptr<const Tokenizer>;

TokenizerPtr opened(Result<TokenizerPtr> tokenizer) {
  EXPECT_TRUE(tokenizer) << tokenizer.error().message();
  return tokenizer.value_or(nullptr);
}

TokenizerPtr read_back(const Tokenizer& tokenizer, int tokens) {
  const auto owned = gguf_vocab_of(model_of(tokenizer), tokens, {});
  EXPECT_TRUE(owned) << owned.error().message();
  if (!owned) return nullptr;
  auto model = make_gguf_tokenizer(owned->vocab);
  EXPECT_TRUE(model) << model.error().message();
  return model ? make_tokenizer(std::move(*model)) : nullptr;
}

void expect_same_ids(const TokenizerPtr& a, int padding) {
  ASSERT_NE(a, nullptr);
  const TokenizerPtr b = read_back(*a, a->vocab_size() + padding);
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(b->vocab_size(), a->vocab_size() + padding);
  EXPECT_EQ(b->bos(), a->bos());
  EXPECT_EQ(b->unk(), a->unk());
  std::mt19937 random(17);
  for (int i = 0; i < 300; ++i) {
    const std::string text = random_text(random, 40);
    const auto x = a->encode(text), y = b->encode(text);
    ASSERT_EQ(x.has_value(), y.has_value()) << text;
    if (!x) continue;
    ASSERT_EQ(*x, *y) << testing::PrintToString(text);
    ASSERT_EQ(a->decode(*x).value_or("?"), b->decode(*x).value_or("!"));
  }
  for (int id = 0; id < a->vocab_size(); ++id) {
    ASSERT_EQ(a->token_text(id), b->token_text(id)) << id;
    ASSERT_EQ(a->is_special(id), b->is_special(id)) << id;
  }
}

TEST(GgufVocabOf, ByteLevelFilesGiveTheSameIds) {
  if (!std::filesystem::exists(data_folder())) GTEST_SKIP() << "outside data folder is absent";
  for (const char* name : {"gpt2", "smollm2", "qwen3"}) {
    SCOPED_TRACE(name);
    const auto path = data_folder() / "tokenizers" / name / "tokenizer.json";
    expect_same_ids(opened(Tokenizer::from_json(path)), 7);
  }
}

TEST(GgufVocabOf, PreTokenizersAreNamedAsLlamaCppNamesThem) {
  if (!std::filesystem::exists(data_folder())) GTEST_SKIP() << "outside data folder is absent";
  const std::pair<const char*, const char*> names[] = {{"gpt2", "gpt-2"}, {"smollm2", "smollm"}, {"qwen3", "qwen2"}};
  for (const auto& [folder, pre] : names) {
    const auto tokenizer = opened(Tokenizer::from_json(data_folder() / "tokenizers" / folder / "tokenizer.json"));
    const auto owned = gguf_vocab_of(model_of(*tokenizer), tokenizer->vocab_size(), {});
    ASSERT_TRUE(owned) << owned.error().message();
    EXPECT_EQ(owned->vocab.pre, pre);
    EXPECT_EQ(owned->vocab.model, "gpt2");
  }
}

JsonParts gpt2_parts() {
  JsonParts parts;
  parts.added = R"([{"id":10,"content":"<|e|>","special":true,"normalized":false},
{"id":12,"content":"<u>","special":false,"normalized":false}])";
  return parts;
}

std::string refusal(const JsonParts& parts, int tokens = 13) {
  const TempFile file(parts.text());
  const auto tokenizer = Tokenizer::from_json(file.path());
  if (!tokenizer) return "not read: " + tokenizer.error().message();
  const auto owned = gguf_vocab_of(model_of(**tokenizer), tokens, {});
  return owned ? "accepted" : owned.error().message();
}

TEST(GgufVocabOf, GapsAreUnusedAndAddedTokensHaveTheirTypes) {
  const TempFile file(gpt2_parts().text());
  const auto tokenizer = opened(Tokenizer::from_json(file.path()));
  const auto owned = gguf_vocab_of(model_of(*tokenizer), 15, {});
  ASSERT_TRUE(owned) << owned.error().message();
  const GgufVocab& v = owned->vocab;
  EXPECT_THAT(v.tokens, testing::ElementsAre("a", "b", "c", "Ġ", "ab", "abc", "bc", "1", "2", "12", "<|e|>", "[PAD11]",
                                             "<u>", "[PAD13]", "[PAD14]"));
  EXPECT_THAT(v.types, testing::ElementsAre(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3, 5, 4, 5, 5));
  EXPECT_THAT(v.merges, testing::ElementsAre("a b", "b c", "ab c", "1 2"));
  EXPECT_EQ(v.add_bos, false);
  EXPECT_EQ(v.bos, std::nullopt);
  EXPECT_EQ(v.unk, std::nullopt);
}

TEST(GgufVocabOf, TheFirstTokenOfATemplateIsBos) {
  JsonParts parts = gpt2_parts();
  const auto prefix = [&](const char* ids) {
    parts.post_processor = std::string(R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<|e|>"}},
{"Sequence":{"id":"A"}}],"special_tokens":{"<|e|>":{"id":"<|e|>","ids":)") +
                           ids + "}}}";
  };
  prefix("[10]");
  const TempFile file(parts.text());
  const auto owned = gguf_vocab_of(model_of(*opened(Tokenizer::from_json(file.path()))), 13, {});
  ASSERT_TRUE(owned) << owned.error().message();
  EXPECT_EQ(owned->vocab.bos, 10);
  EXPECT_EQ(owned->vocab.add_bos, true);
  prefix("[10,10]");
  EXPECT_THAT(refusal(parts), HasSubstr("2 tokens first"));
}

TEST(GgufVocabOf, WhatGgufCannotSayIsRefused) {
  EXPECT_EQ(refusal(gpt2_parts()), "accepted");
  EXPECT_THAT(refusal(gpt2_parts(), 12), AllOf(HasSubstr("13 tokens"), HasSubstr("12")));
  const auto with = [](auto change) {
    JsonParts parts = gpt2_parts();
    change(parts);
    return refusal(parts);
  };
  EXPECT_THAT(with([](JsonParts& p) { p.pre_tokenizer = R"({"type":"ByteLevel","add_prefix_space":true})"; }),
              HasSubstr("space before each text"));
  EXPECT_THAT(with([](JsonParts& p) {
                p.pre_tokenizer = R"({"type":"ByteLevel","add_prefix_space":false,"use_regex":false})";
              }),
              HasSubstr("cuts its texts"));
  EXPECT_EQ(with([](JsonParts& p) { p.normalizer = R"({"type":"NFC"})"; }), "accepted");
  EXPECT_THAT(with([](JsonParts& p) { p.model_extra = R"("type":"BPE","ignore_merges":true)"; }),
              HasSubstr("cuts its texts"));
  EXPECT_THAT(with([](JsonParts& p) { p.model_extra = R"("type":"BPE","unk_token":"a","fuse_unk":true)"; }),
              HasSubstr("unknown"));
  for (const char* flag : {"lstrip", "rstrip", "single_word"})
    EXPECT_THAT(with([&](JsonParts& p) {
                  p.added = std::string(R"([{"id":10,"content":"<|e|>","special":true,")") + flag + R"(":true}])";
                }),
                HasSubstr("<|e|>"))
        << flag;
}

TEST(GgufVocabOf, SpmByRankIsRefused) {
  JsonParts parts;
  parts.pre_tokenizer = "null";
  parts.normalizer = R"({"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"▁"},
{"type":"Replace","pattern":{"String":" "},"content":"▁"}]})";
  parts.decoder = R"({"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"▁"},"content":" "},
{"type":"ByteFallback"},{"type":"Fuse"}]})";
  parts.model_extra = R"("type":"BPE","unk_token":"a","byte_fallback":true,"fuse_unk":true)";
  EXPECT_THAT(refusal(parts), HasSubstr("by rank"));
}

}  // namespace
}  // namespace kvasir
