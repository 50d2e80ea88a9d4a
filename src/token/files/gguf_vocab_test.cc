// Hand-made values of `tokenizer.ggml.*`: what they mean, and what is refused by name.
#include "token/files/gguf_vocab.h"

#include <cmath>
#include <random>

#include <gmock/gmock.h>
#include <kvasir/tokenizer.h>

#include "tests/support/random_text.h"
#include "token/byte_map.h"
#include "token/tokenizer_impl.h"

namespace kvasir {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using token_test::random_text;
using Ids = std::vector<int>;

std::shared_ptr<const Tokenizer> make(const GgufVocab& vocab) {
  auto model = make_gguf_tokenizer(vocab);
  EXPECT_TRUE(model) << model.error().message();
  return model ? make_tokenizer(std::move(*model)) : nullptr;
}

std::string refusal(const GgufVocab& vocab) {
  const auto model = make_gguf_tokenizer(vocab);
  return model ? "accepted" : model.error().message();
}

// 0 <unk>, 1 <s>, 2 </s>, 3.. the bytes, 259 "▁", 260 a, 261 "▁a", 262 <u> (user-defined), 263 ab (unused), 264 b.
const std::vector<std::string>& llama_tokens() {
  static const std::vector<std::string> tokens = [] {
    std::vector<std::string> made = {"<unk>", "<s>", "</s>"};
    for (int byte = 0; byte < 256; ++byte) {
      char name[8];
      std::snprintf(name, sizeof name, "<0x%02X>", static_cast<unsigned>(byte));
      made.push_back(name);
    }
    for (const char* piece : {"\u2581", "a", "\u2581a", "<u>", "ab", "b"}) made.push_back(piece);
    return made;
  }();
  return tokens;
}

GgufVocab llama() {
  GgufVocab vocab;
  vocab.model = "llama";
  vocab.tokens.assign(llama_tokens().begin(), llama_tokens().end());
  vocab.scores.assign(vocab.tokens.size(), 0);
  vocab.types.assign(vocab.tokens.size(), 6);
  std::copy_n(std::vector<int>{2, 3, 3}.begin(), 3, vocab.types.begin());
  const std::vector<int> last = {1, 1, 1, 4, 5, 1};
  std::copy(last.begin(), last.end(), vocab.types.end() - 6);
  vocab.scores[261] = 3;
  vocab.scores[263] = 4;
  vocab.bos = 1;
  vocab.unk = 0;
  return vocab;
}

// The 256 bytes in their spelling, then "Ġa" and, from 257 on, the added tokens.
const std::vector<std::string>& gpt2_tokens() {
  static const std::vector<std::string> tokens = [] {
    std::vector<std::string> made;
    for (int byte = 0; byte < 256; ++byte) {
      const char one = static_cast<char>(static_cast<unsigned char>(byte));
      made.push_back(spell_bytes({&one, 1}));
    }
    for (const char* piece : {"\u0120a", "<|e|>", "<|u|>", "12", "123", "a1"}) made.push_back(piece);
    return made;
  }();
  return tokens;
}

GgufVocab gpt2(const std::string& pre) {
  GgufVocab vocab;
  vocab.model = "gpt2";
  vocab.pre = pre;
  vocab.tokens.assign(gpt2_tokens().begin(), gpt2_tokens().end());
  vocab.types.assign(vocab.tokens.size(), 1);
  vocab.types[257] = 3;
  vocab.types[258] = 4;
  vocab.merges = {"\u0120 a", "1 2", "12 3", "a 1"};
  vocab.bos = 257;
  return vocab;
}

TEST(GgufVocab, LlamaPutsASpaceBeforeEveryStretchAndBosOnce) {
  const auto tokenizer = make(llama());
  EXPECT_THAT(tokenizer->encode("a a<s>a").value(), ElementsAre(1, 261, 261, 1, 261));
  EXPECT_THAT(tokenizer->encode("<s>a").value(), ElementsAre(1, 261));
  EXPECT_THAT(tokenizer->encode("a<u>a", false).value(), ElementsAre(261, 262, 261));
  EXPECT_THAT(tokenizer->encode("ab", false).value(), ElementsAre(259, 260, 264));  // "ab" is unused
  EXPECT_THAT(tokenizer->encode("\n", false).value(), ElementsAre(259, 3 + '\n'));
  EXPECT_EQ(tokenizer->vocab_size(), 265);
  EXPECT_EQ(tokenizer->bos(), 1);
  EXPECT_EQ(tokenizer->unk(), 0);
  EXPECT_TRUE(tokenizer->is_special(0));
  EXPECT_TRUE(tokenizer->is_special(2));
  EXPECT_FALSE(tokenizer->is_special(262));
  EXPECT_EQ(tokenizer->decode(Ids{1, 261, 2}).value(), "<s>a</s>");
}

TEST(GgufVocab, LlamaFlags) {
  GgufVocab vocab = llama();
  vocab.add_space_prefix = false;
  EXPECT_THAT(make(vocab)->encode("a").value(), ElementsAre(1, 260));
  vocab.add_bos = false;
  EXPECT_THAT(make(vocab)->encode("a").value(), ElementsAre(260));
  vocab = llama();
  vocab.bos.reset();
  EXPECT_EQ(make(vocab)->bos(), std::nullopt);
  vocab.add_bos = true;
  EXPECT_THAT(refusal(vocab), HasSubstr("bos_token_id"));
}

// As llama(), but merged by rank: 259 "▁", 260 a, 261 "▁a", 262 <u> (user-defined), 263 "▁▁", 264 "\n".
GgufVocab gemma() {
  GgufVocab vocab = llama();
  vocab.model = "gemma4";
  vocab.scores.clear();
  vocab.tokens[263] = "\u2581\u2581";
  vocab.tokens[264] = "\n";
  vocab.types[263] = 1;
  vocab.merges = {"\u2581 \u2581", "\u2581 a"};
  return vocab;
}

TEST(GgufVocab, GemmaMergesByRankOverTheWholeText) {
  const auto tokenizer = make(gemma());
  EXPECT_THAT(tokenizer->encode("a a").value(), ElementsAre(1, 260, 261));
  EXPECT_THAT(tokenizer->encode("   a", false).value(), ElementsAre(263, 261));
  EXPECT_THAT(tokenizer->encode("  a", false).value(), ElementsAre(263, 260));
  EXPECT_THAT(tokenizer->encode("\n\u00E9", false).value(), ElementsAre(264, 3 + 0xC3, 3 + 0xA9));
  EXPECT_THAT(tokenizer->encode(" <u> a", false).value(), ElementsAre(259, 262, 261));
  EXPECT_THAT(tokenizer->encode("<s>a").value(), ElementsAre(1, 260));
  EXPECT_EQ(tokenizer->decode(Ids{1, 263, 261, 264, 3 + 0xC3, 3 + 0xA9}).value(), "<s>   a\n\u00E9");
  EXPECT_EQ(tokenizer->bos(), 1);
  EXPECT_EQ(tokenizer->unk(), 0);
}

TEST(GgufVocab, GemmaPutsBosFirstWhateverTheFileSays) {
  GgufVocab vocab = gemma();
  vocab.add_bos = false;
  EXPECT_THAT(make(vocab)->encode("a").value(), ElementsAre(1, 260));
  vocab.bos.reset();
  EXPECT_THAT(make(vocab)->encode("a").value(), ElementsAre(260));
  vocab.add_bos = true;
  EXPECT_THAT(refusal(vocab), HasSubstr("bos_token_id"));
}

TEST(GgufVocab, GemmaNeedsTypesAndPutsNoSpace) {
  GgufVocab vocab = gemma();
  vocab.add_space_prefix = true;
  EXPECT_THAT(refusal(vocab), AllOf(HasSubstr("add_space_prefix"), HasSubstr("gemma4")));
  vocab = gemma();
  vocab.types.clear();
  EXPECT_THAT(refusal(vocab), HasSubstr("token_type has 0 entries for 265 tokens"));
  vocab = gemma();
  vocab.merges[1] = "\u2581 x";
  EXPECT_THAT(refusal(vocab), HasSubstr("merge 2"));
}

TEST(GgufVocab, RandomTextsRoundTrip) {
  std::mt19937 random(3);
  const auto by_score = make(llama());
  const auto gemmas = make(gemma());
  const auto by_rank = make(gpt2("gpt-2"));
  for (int round = 0; round < 1000; ++round) {
    const std::string text = random_text(random, 20);
    ASSERT_EQ(by_rank->decode(by_rank->encode(text, false).value()).value(), text);
    if (text.find("\u2581") != text.npos) continue;
    ASSERT_EQ(by_score->decode(by_score->encode(text, false).value()).value(), text);
    ASSERT_EQ(gemmas->decode(gemmas->encode(text, false).value()).value(), text);
  }
}

TEST(GgufVocab, Gpt2CutsAsItsPreTokenizerSays) {
  EXPECT_THAT(make(gpt2("gpt-2"))->encode("a123 a").value(), ElementsAre('a', 260, 256));
  EXPECT_THAT(make(gpt2("smollm"))->encode("a123 a").value(), ElementsAre('a', '1', '2', '3', 256));
  EXPECT_THAT(make(gpt2("qwen2"))->encode("123").value(), ElementsAre('1', '2', '3'));
  EXPECT_THAT(make(gpt2("llama-bpe"))->encode("1231").value(), ElementsAre(257, 260, '1'));
  EXPECT_THAT(make(gpt2("tekken"))->encode("12", false).value(), ElementsAre('1', '2'));
  EXPECT_THAT(make(gpt2("falcon"))->encode("1231").value(), ElementsAre(260, '1'));
}

TEST(GgufVocab, Gpt2WordsThatArePiecesIgnoreMergesWhereTheModelDoes) {
  GgufVocab vocab = gpt2("llama3");
  vocab.merges = {"\u0120 a"};
  EXPECT_THAT(make(vocab)->encode("123", false).value(), ElementsAre(260));
  vocab.pre = "gpt-2";
  EXPECT_THAT(make(vocab)->encode("123", false).value(), ElementsAre('1', '2', '3'));
}

TEST(GgufVocab, Gpt2NormalisesWhereTheModelDoes) {
  const auto composed = make(gpt2("gpt-2"))->encode("\u00E9").value();
  for (const char* pre : {"qwen2", "command-r", "olmo", "deepseek-r1-qwen"})
    EXPECT_EQ(make(gpt2(pre))->encode("e\u0301").value(), composed) << pre;
  for (const char* pre : {"smollm", "qwen35", "stablelm2"})
    EXPECT_NE(make(gpt2(pre))->encode("e\u0301").value(), composed) << pre;
}

TEST(GgufVocab, Gpt2FlagsAndAddedTokens) {
  GgufVocab vocab = gpt2("gpt-2");
  EXPECT_EQ(make(vocab)->bos(), std::nullopt);
  EXPECT_EQ(make(gpt2("llama-bpe"))->bos(), 257);
  vocab.add_bos = true;
  const auto tokenizer = make(vocab);
  EXPECT_THAT(tokenizer->encode("a<|u|>a<|e|>").value(), ElementsAre(257, 'a', 258, 'a', 257));
  EXPECT_THAT(tokenizer->encode("<|e|>").value(), ElementsAre(257));
  EXPECT_TRUE(tokenizer->is_special(257));
  EXPECT_FALSE(tokenizer->is_special(258));
  EXPECT_EQ(tokenizer->decode(Ids{256, 258}).value(), " a<|u|>");
  vocab.types.clear();
  EXPECT_FALSE(make(vocab)->is_special(257));
}

TEST(GgufVocab, UnknownNamesAreRefusedWithTheKnownOnes) {
  for (const char* pre : {"default", "", "gpt2", "kimi-k2", "llama-bpe "}) {
    EXPECT_THAT(refusal(gpt2(pre)),
                AllOf(HasSubstr("tokenizer.ggml.pre"), HasSubstr("known: gpt-2, phi-2"), HasSubstr(pre)));
  }
  for (const char* model : {"bert", "t5", "rwkv", "plamo2", "none", ""}) {
    GgufVocab vocab = llama();
    vocab.model = model;
    EXPECT_THAT(refusal(vocab), AllOf(HasSubstr(model), HasSubstr("tokenizer.ggml.model"), HasSubstr("gemma4")));
  }
}

TEST(GgufVocab, ArraysThatDoNotAgree) {
  GgufVocab vocab = llama();
  vocab.scores.pop_back();
  EXPECT_THAT(refusal(vocab), HasSubstr("scores has 264 entries for 265 tokens"));
  vocab = llama();
  vocab.types.push_back(1);
  EXPECT_THAT(refusal(vocab), HasSubstr("token_type has 266 entries"));
  vocab = gpt2("gpt-2");
  vocab.types.pop_back();
  EXPECT_THAT(refusal(vocab), HasSubstr("token_type"));
  vocab = llama();
  vocab.tokens.clear();
  EXPECT_THAT(refusal(vocab), HasSubstr("0 tokens"));
  vocab = gpt2("gpt-2");
  vocab.merges.clear();
  EXPECT_EQ(refusal(vocab), "accepted") << "a vocabulary of bytes has none";
}

TEST(GgufVocab, ValuesThatContradict) {
  const auto with = [](const auto& change, GgufVocab vocab = llama()) {
    change(vocab);
    return refusal(vocab);
  };
  EXPECT_THAT(with([](auto& v) { v.scores[7] = std::nanf(""); }), HasSubstr("token 7"));
  EXPECT_THAT(with([](auto& v) { v.types[7] = 0; }), HasSubstr("type 0"));
  EXPECT_THAT(with([](auto& v) { v.types[7] = 7; }), HasSubstr("type 7"));
  EXPECT_THAT(with([](auto& v) { v.types[260] = 6; }), HasSubstr("spells no byte"));
  EXPECT_THAT(with([](auto& v) { v.tokens[7] = v.tokens[8]; }), HasSubstr("two ids"));
  EXPECT_EQ(with([](auto& v) { v.tokens[263] = v.tokens[264] = ""; }), "accepted");
  EXPECT_THAT(with([](auto& v) { v.bos = 265; }), HasSubstr("bos_token_id 265"));
  EXPECT_THAT(with([](auto& v) { v.eos = -1; }), HasSubstr("eos_token_id -1"));
  EXPECT_THAT(with([](auto& v) { v.eot = 1 << 30; }), HasSubstr("eot_token_id"));
  EXPECT_THAT(with([](auto& v) { v.unk = 300; }), HasSubstr("unknown_token_id 300"));
  EXPECT_THAT(with([](auto& v) { v.merges[1] = "12"; }, gpt2("gpt-2")), HasSubstr("merge 2"));
  EXPECT_THAT(with([](auto& v) { v.merges[1] = "1 x1"; }, gpt2("gpt-2")), HasSubstr("merge 2"));
  EXPECT_THAT(with([](auto& v) { v.merges[1] = ""; }, gpt2("gpt-2")), HasSubstr("merge 2"));
}

}  // namespace
}  // namespace kvasir
