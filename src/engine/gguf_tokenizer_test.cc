// Tokenizers of GGUF files against llama.cpp's own vectors, and files whose metadata is wrong.
#include "engine/gguf_tokenizer.h"

#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <kvasir/engine.h>
#include <kvasir/generate.h>

#include "tests/support/gguf_bytes.h"
#include "tests/support/temp_files.h"

namespace kvasir {
namespace {

using format_test::message_of;
using format_test::outside_data;
using format_test::put;
using format_test::slurp;
using format_test::TempFolder;
using gguf_test::Bytes;
using gguf_test::head;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

struct Vector {
  std::string text;
  std::vector<int> ids;
};

// NAME.gguf.inp contains texts with a separator line between them, NAME.gguf.out a line of ids for each text.
std::vector<Vector> vectors(const std::filesystem::path& gguf) {
  constexpr std::string_view kBetween = "\n__ggml_vocab_test__\n";
  const std::string texts = slurp(gguf.string() + ".inp");
  std::stringstream lines(slurp(gguf.string() + ".out"));
  std::vector<Vector> out;
  for (size_t at = 0; at < texts.size();) {
    const size_t end = std::min(texts.find(kBetween, at), texts.size());
    Vector v{texts.substr(at, end - at), {}};
    std::string line;
    std::getline(lines, line);
    std::stringstream numbers(line);
    for (int id = 0; numbers >> id;) v.ids.push_back(id);
    out.push_back(std::move(v));
    at = end + kBetween.size();
  }
  return out;
}

// A vocabulary of llama.cpp's models/, from the folder in KVASIR_VOCABS or the outside data; empty if there is none.
std::filesystem::path vocabulary(const std::string& name) {
  std::vector<std::filesystem::path> folders;
  if (const char* set = std::getenv("KVASIR_VOCABS")) folders.emplace_back(set);
  if (!outside_data().empty()) folders.push_back(outside_data() / "tokenizers/vectors");
  for (const auto& folder : folders)
    if (const auto path = folder / ("ggml-vocab-" + name + ".gguf"); std::filesystem::exists(path)) return path;
  return {};
}

class GgufVectors : public testing::TestWithParam<const char*> {};

TEST_P(GgufVectors, EveryTextGivesTheIds) {
  const auto path = vocabulary(GetParam());
  if (path.empty()) GTEST_SKIP() << "the vocabulary is absent (KVASIR_VOCABS names a folder of ggml-vocab-*.gguf)";
  const auto tokenizer = open_gguf_tokenizer(path);
  ASSERT_TRUE(tokenizer) << message_of(tokenizer);
  const auto all = vectors(path);
  EXPECT_GE(all.size(), 46u);
  for (const Vector& v : all) {
    const auto ids = (*tokenizer)->encode(v.text, false);
    ASSERT_TRUE(ids) << message_of(ids);
    EXPECT_EQ(*ids, v.ids) << testing::PrintToString(v.text);
    EXPECT_EQ((*tokenizer)->decode(*ids).value_or("error"), v.text);
  }
}

INSTANTIATE_TEST_SUITE_P(Files, GgufVectors,
                         testing::Values("command-r", "deepseek-coder", "deepseek-llm", "falcon", "gemma-4", "gpt-2",
                                         "llama-bpe", "llama-spm", "mpt", "phi-3", "qwen2", "qwen35", "refact",
                                         "starcoder"),
                         [](const auto& file) {
                           std::string name = file.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST(GgufTokenizer, Phi3sAddedTokensSwallowTheLineEndAfterThem) {
  if (outside_data().empty()) GTEST_SKIP() << "outside data folder is absent";
  const auto phi3 = open_gguf_tokenizer(outside_data() / "tokenizers/vectors/ggml-vocab-phi-3.gguf");
  ASSERT_TRUE(phi3) << message_of(phi3);
  const auto ids = *(*phi3)->encode("<|user|>\nHi<|end|>\n<|assistant|>\n", false);
  EXPECT_EQ(ids, *(*phi3)->encode("<|user|>Hi<|end|><|assistant|>", false));
  EXPECT_THAT(ids, ElementsAre(32010, 6324, 32007, 32001));
  EXPECT_EQ((*phi3)->encode("<|endoftext|>\n", false)->size(), 3u) << "this one leaves it";
}

TEST(GgufModelFile, TheTinyRandomLlamaGenerates) {
  if (outside_data().empty()) GTEST_SKIP() << "outside data folder is absent";
  const auto model = Model::open((outside_data() / "models/tiny-random-llama-gguf/tiny-random-llama.gguf").string());
  ASSERT_TRUE(model) << message_of(model);
  const auto engine = Engine::create(*model, {.threads = 1});
  auto session = (*engine)->open_session({.ctx = 64});
  GenerateOptions options;
  options.max_tokens = 8;
  options.ignore_eos = true;
  const auto g = generate(**engine, *session, *(*model)->tokenizer()->encode("Once upon a time"), options);
  ASSERT_TRUE(g) << message_of(g);
  EXPECT_EQ(g->tokens.size(), 8u);
}

// ---- metadata -----------------------------------------------------------------------------------------------------

std::string error_of(const Bytes& bytes) {
  const TempFolder folder;
  put(folder / "t.gguf", bytes.data);
  return message_of(open_gguf_tokenizer(folder / "t.gguf"));
}

Bytes pieces(Bytes b, const std::vector<std::string>& texts) {
  b.array("tokenizer.ggml.tokens", GgufType::string, texts.size());
  for (const std::string& text : texts) b.string(text);
  return b;
}

TEST(GgufTokenizer, ASmallOneOfGpt2sKind) {
  const TempFolder folder;
  Bytes b = pieces(head(0, 6), {"a", "b", "ab", "<|end|>"});
  b.array("tokenizer.ggml.merges", GgufType::string, 1).string("a b");
  b.text_entry("tokenizer.ggml.model", "gpt2").text_entry("tokenizer.ggml.pre", "gpt-2");
  b.array("tokenizer.ggml.token_type", GgufType::i32, 4);
  for (int32_t type : {1, 1, 1, 3}) b.number(type);
  b.entry("tokenizer.ggml.bos_token_id", GgufType::u32, uint32_t{3});
  put(folder / "t.gguf", b.data);
  const auto tokenizer = open_gguf_tokenizer(folder / "t.gguf");
  ASSERT_TRUE(tokenizer) << message_of(tokenizer);
  EXPECT_THAT(*(*tokenizer)->encode("abba<|end|>"), ElementsAre(2, 1, 0, 3));
  EXPECT_TRUE((*tokenizer)->is_special(3));
}

TEST(GgufTokenizer, WhatIsMissingOrWrongIsNamed) {
  EXPECT_THAT(error_of(head(0, 0)), HasSubstr("tokenizer.ggml.model"));
  EXPECT_THAT(error_of(head(0, 1).text_entry("tokenizer.ggml.model", "gpt2")), HasSubstr("tokenizer.ggml.tokens"));
  EXPECT_THAT(error_of(head(0, 1).entry("tokenizer.ggml.model", GgufType::u8, uint8_t{1})),
              AllOf(HasSubstr("tokenizer.ggml.model"), HasSubstr("u8")));
  const auto with = [](std::string_view model, auto add) {
    Bytes b = pieces(head(0, 3), {"a", "b"}).text_entry("tokenizer.ggml.model", model);
    add(b);
    return error_of(b);
  };
  EXPECT_THAT(with("gpt2", [](Bytes& b) { b.text_entry("tokenizer.ggml.pre", "no-such-pre"); }),
              HasSubstr("no-such-pre"));
  EXPECT_THAT(with("gpt2", [](Bytes& b) { b.text_entry("tokenizer.ggml.pre", "gpt-2"); }),
              HasSubstr("tokenizer.ggml.merges"));
  EXPECT_THAT(with("t5", [](Bytes& b) { b.text_entry("tokenizer.ggml.pre", "default"); }), HasSubstr("t5"));
  EXPECT_THAT(with("llama", [](Bytes& b) { b.text_entry("tokenizer.ggml.scores", "x"); }),
              HasSubstr("tokenizer.ggml.scores"));
  EXPECT_THAT(with("llama", [](Bytes& b) { b.entry("tokenizer.ggml.bos_token_id", GgufType::i32, int32_t{-2}); }),
              HasSubstr("-2"));
  EXPECT_THAT(with("llama",
                   [](Bytes& b) {
                     b.array("tokenizer.ggml.token_type", GgufType::i32, 2).number<int32_t>(1).number<int32_t>(999);
                   }),
              HasSubstr("999"));
}

}  // namespace
}  // namespace kvasir
