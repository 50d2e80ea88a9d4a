// A folder and the GGUF file made from it give the same ids for the same text; otherwise writing the file is refused,
// and the error names the difference.
#include <filesystem>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <kvasir/tokenizer.h>

#include "arch/family.h"
#include "tests/support/random_text.h"
#include "tests/support/temp_files.h"
#include "tests/support/token_kinds.h"
#include "token/files/gguf_vocab.h"
#include "token/tokenizer_impl.h"
#include "token/utf8.h"

namespace kvasir {
namespace {

using format_test::message_of;
using format_test::outside_data;
using format_test::put;
using format_test::slurp;
using format_test::TempFolder;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using token_kinds::Kind;
using token_kinds::kinds;
using TokenizerPtr = std::shared_ptr<const Tokenizer>;

// Random texts of words, marks and spaces, special pieces, pieces of the vocabulary and U+2581.
class Texts {
 public:
  explicit Texts(const Tokenizer& tokenizer, unsigned seed) : tokenizer_(tokenizer), random_(seed) {
    for (int id = 0; id < tokenizer.vocab_size(); ++id)
      if (tokenizer.is_added(id) || tokenizer.is_special(id)) special_.push_back(tokenizer.piece(id));
  }

  std::string next() {
    std::string text;
    for (auto parts = 1 + random_() % 6; parts > 0; --parts) {
      const auto kind = random_() % 8;
      if (kind < 3 && !special_.empty()) {
        text += special_[random_() % special_.size()];
      } else if (kind == 3) {
        text += tokenizer_.token_text(static_cast<int>(random_() % static_cast<unsigned>(tokenizer_.vocab_size())));
      } else if (kind == 4) {
        text += std::string(random_() % 3, ' ') + "in the end \u2581the world,";
      } else {
        text += token_test::random_text(random_, 8);
      }
    }
    return text;
  }

 private:
  const Tokenizer& tokenizer_;
  std::mt19937 random_;
  std::vector<std::string> special_;
};

// Returns "" if the file is written, after expecting equal ids for all texts; else the reason for the refusal.
std::string difference(const Kind& kind, const TokenizerPtr& folder, int texts) {
  const GgufNames* const names = find_gguf_names(kind.arch);
  const RstripBut rstrip_but = names != nullptr ? names->rstrip_but : RstripBut();
  const auto owned = gguf_vocab_of(model_of(*folder), folder->vocab_size() + 3, rstrip_but);
  if (!owned) return owned.error().message();
  auto model = make_gguf_tokenizer(owned->vocab);
  EXPECT_TRUE(model) << message_of(model);
  if (!model) return "cannot be read back";
  const TokenizerPtr file = make_tokenizer(std::move(*model));
  Texts source(*folder, 41);
  for (int i = 0; i < texts; ++i) {
    const std::string text = source.next();
    const auto a = folder->encode(text), b = file->encode(text);
    EXPECT_EQ(a.has_value(), b.has_value()) << testing::PrintToString(text);
    if (!a || !b) continue;
    EXPECT_EQ(*a, *b) << testing::PrintToString(text);
    EXPECT_EQ(*folder->decode(*a), *file->decode(*b)) << testing::PrintToString(text);
    if (testing::Test::HasFailure()) return "other ids";
  }
  EXPECT_EQ(folder->end_of_turn(), file->end_of_turn());
  return {};
}

void expect_same_ids_or_a_refusal(int texts) {
  int seen = 0;
  for (const Kind& kind : kinds()) {
    SCOPED_TRACE(kind.name);
    const TempFolder scratch;
    if (!kind.make(scratch.path())) continue;  // outside data is absent
    ++seen;
    const auto folder = Tokenizer::from_folder(scratch.path());
    ASSERT_TRUE(folder) << message_of(folder);
    const std::string refusal = difference(kind, *folder, texts);
    if (kind.refused.empty())
      EXPECT_EQ(refusal, "");
    else
      EXPECT_THAT(refusal, HasSubstr(kind.refused));
  }
  EXPECT_GE(seen, 4);
}

TEST(RegressQuantizeChangesIds, AFolderAndItsGgufGiveTheSameIds) { expect_same_ids_or_a_refusal(40); }
TEST(SlowRegressQuantizeChangesIds, OnTenThousandTextsOfEachKind) { expect_same_ids_or_a_refusal(10000); }

TokenizerPtr folder_of(const TempFolder& folder) {
  auto tokenizer = Tokenizer::from_folder(folder.path());
  EXPECT_TRUE(tokenizer) << message_of(tokenizer);
  return tokenizer.value_or(nullptr);
}

std::string refusal_of(const TempFolder& folder) { return message_of(Tokenizer::from_folder(folder.path())); }

// The expected ids are those of llama.cpp b6845 for the same vocabulary with the same two pieces of type 4, after BOS.
TEST(RegressQuantizeChangesIds, UserDefinedPiecesOfASentencePieceModel) {
  const TempFolder folder;
  if (!token_kinds::mistral_with_user_defined(folder.path())) GTEST_SKIP() << "outside data folder is absent";
  const TokenizerPtr tokenizer = folder_of(folder);
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_THAT(*tokenizer->encode("in the end"), ElementsAre(1, 297, 272, 948));
  EXPECT_THAT(*tokenizer->encode("a world b"), ElementsAre(1, 264, 28705, 9471, 28705, 287));
  for (const std::string text : {"the end of the world", "in the end", " the  the", "world the"})
    EXPECT_EQ(*tokenizer->decode(*tokenizer->encode(text, false)), text);
}

TEST(RegressQuantizeChangesIds, ControlPiecesAreLookedForInAFolderAndNotInTheFileAlone) {
  const auto model = outside_data() / "tokenizers/mistral/tokenizer.model.v1";
  if (outside_data().empty()) GTEST_SKIP() << "outside data folder is absent";
  const TempFolder folder;
  std::filesystem::copy_file(model, folder / "tokenizer.model");
  EXPECT_THAT(*folder_of(folder)->encode("<s>é"), ElementsAre(1, 1233));
  const auto alone = Tokenizer::from_sentencepiece(model);
  ASSERT_TRUE(alone) << message_of(alone);
  EXPECT_THAT(*(*alone)->encode("<s>é"), ElementsAre(1, 523, 28713, 28767, 28797));  // libsentencepiece's
  EXPECT_THAT(gguf_vocab_of(model_of(**alone), 32000, {}).error().message(), HasSubstr("<unk>"));
}

// ---- files beside the tokenizer's file ----------------------------------------------------------------------------

class RegressFilesBesideTheTokenizer : public testing::Test {
 protected:
  void SetUp() override {
    if (outside_data().empty()) GTEST_SKIP() << "outside data folder is absent";
    std::filesystem::copy_file(outside_data() / "tokenizers/mistral/tokenizer.model.v1", folder_ / "tokenizer.model");
  }
  void config(std::string_view text) const { put(folder_ / "tokenizer_config.json", text); }
  std::vector<int> ids(std::string_view text) const {
    const TokenizerPtr tokenizer = folder_of(folder_);
    return tokenizer == nullptr ? std::vector<int>() : *tokenizer->encode(text);
  }
  std::vector<std::string> notes() const {
    std::vector<std::string> notes;
    const TokenizerPtr tokenizer = folder_of(folder_);
    for (const Ignored& part : tokenizer->ignored())
      if (part.noted) notes.push_back(part.name);
    return notes;
  }

  TempFolder folder_;
};

TEST_F(RegressFilesBesideTheTokenizer, AddedTokensJson) {
  put(folder_ / "added_tokens.json", R"({"<|im_end|>": 32000, "<|im_start|>": 32001})");
  const TokenizerPtr tokenizer = folder_of(folder_);
  EXPECT_THAT(*tokenizer->encode("<|im_start|>user"), ElementsAre(1, 32001, *tokenizer->find("\u2581user")));
  EXPECT_EQ(tokenizer->token_text(32000), "<|im_end|>");
  EXPECT_EQ(tokenizer->vocab_size(), 32002);
  EXPECT_THAT(tokenizer->end_of_turn(), ElementsAre(2, 32000));
  put(folder_ / "added_tokens.json", R"({"<|im_end|>": 31999})");
  EXPECT_THAT(refusal_of(folder_), AllOf(HasSubstr("31999"), HasSubstr("<|im_end|>"), HasSubstr("added_tokens.json")));
  put(folder_ / "added_tokens.json", R"({"</s>": 32000})");
  EXPECT_THAT(refusal_of(folder_), AllOf(HasSubstr("</s>"), HasSubstr("32000"), HasSubstr("2")));
  put(folder_ / "added_tokens.json", "[1]");
  EXPECT_THAT(refusal_of(folder_), HasSubstr("added_tokens.json"));
}

TEST_F(RegressFilesBesideTheTokenizer, AddedTokensDecoderAndItsFlags) {
  config(R"({"added_tokens_decoder": {"32000": {"content": "<|a|>", "rstrip": true, "special": true},
    "32001": {"content": "<|b|>", "special": false, "normalized": true}}, "pad_token": "<|a|>"})");
  const TokenizerPtr tokenizer = folder_of(folder_);
  const int a = *tokenizer->find("\u2581a"), x = *tokenizer->find("\u2581x");
  EXPECT_THAT(*tokenizer->encode("a<|a|> \n x<|b|>x"), ElementsAre(1, a, 32000, x, 32001, x));
  EXPECT_TRUE(tokenizer->is_special(32000));
  EXPECT_FALSE(tokenizer->is_special(32001));
  EXPECT_THAT(gguf_vocab_of(model_of(*tokenizer), 32002, {}).error().message(), HasSubstr("<|a|>"));
}

TEST_F(RegressFilesBesideTheTokenizer, BosAndTheSpaceBeforeAText) {
  const int b = *folder_of(folder_)->find("b"), after_space = *folder_of(folder_)->find("\u2581b");
  config(R"({"add_bos_token": false})");
  EXPECT_EQ(ids("<s>b").front(), 1);
  EXPECT_NE(ids("b").front(), 1);
  config(R"({"add_bos_token": true, "bos_token": "</s>"})");
  EXPECT_EQ(ids("b").front(), 2);
  config(R"({"add_bos_token": true, "bos_token": "<nosuch>"})");
  EXPECT_THAT(refusal_of(folder_), HasSubstr("<nosuch>"));
  config(R"({"add_prefix_space": false})");
  EXPECT_EQ(ids("b</s>b"), (std::vector<int>{1, b, 2, b}));
  config(R"({"legacy": false})");
  EXPECT_EQ(ids("</s>b"), (std::vector<int>{1, 2, b}));
  EXPECT_EQ(ids("b</s>b"), (std::vector<int>{1, after_space, 2, b}));
  EXPECT_THAT(gguf_vocab_of(model_of(*folder_of(folder_)), 32000, {}).error().message(), HasSubstr("space"));
}

TEST_F(RegressFilesBesideTheTokenizer, WhatChangesIdsIsRefusedByName) {
  for (const char* key : {"add_eos_token", "split_special_tokens", "do_lower_case"}) {
    config(std::string("{\"") + key + "\": true}");
    EXPECT_THAT(refusal_of(folder_), AllOf(HasSubstr(key), HasSubstr("tokenizer_config.json")));
    config(std::string("{\"") + key + "\": false}");
    EXPECT_THAT(notes(), testing::IsEmpty());
  }
  config(R"({"add_bos_token": "yes"})");
  EXPECT_THAT(refusal_of(folder_), HasSubstr("add_bos_token"));
  config("{");
  EXPECT_THAT(refusal_of(folder_), HasSubstr("tokenizer_config.json"));
}

TEST_F(RegressFilesBesideTheTokenizer, WhatIsNotKnownIsNoted) {
  config(R"({"model_max_length": 4096, "chat_template": "{{x}}", "made_up": 1, "pad_token": "[PAD]"})");
  EXPECT_THAT(notes(),
              testing::UnorderedElementsAre("tokenizer_config.json: made_up", "tokenizer_config.json: pad_token"));
}

TEST_F(RegressFilesBesideTheTokenizer, SpecialTokensMap) {
  put(folder_ / "special_tokens_map.json", R"({"additional_special_tokens": ["[INST]", {"content": "the"}]})");
  put(folder_ / "added_tokens.json", R"({"[INST]": 32000})");
  const TokenizerPtr tokenizer = folder_of(folder_);
  EXPECT_TRUE(tokenizer->is_special(32000));
  const int x = *tokenizer->find("\u2581x");
  EXPECT_THAT(*tokenizer->encode("x[INST]thex"), ElementsAre(1, x, 32000, *tokenizer->find("the"), x));
}

// tokenizer.json together with the settings of its folder.
TEST(RegressFilesBesideATokenizerJson, TheFolderMayWriteBosAnew) {
  const TempFolder folder;
  const std::string text = slurp(std::string(KVASIR_SOURCE_DIR) + "/models/tales/tokenizer.json");
  put(folder / "tokenizer.json", text);
  const auto plain = *folder_of(folder)->encode("Once upon");
  EXPECT_NE(plain.front(), 0);
  put(folder / "tokenizer_config.json", R"({"add_bos_token": true, "bos_token": "<|endoftext|>"})");
  std::vector<int> with_bos = plain;
  with_bos.insert(with_bos.begin(), 0);
  EXPECT_EQ(*folder_of(folder)->encode("Once upon"), with_bos);
  put(folder / "tokenizer_config.json", R"({"add_bos_token": true})");
  EXPECT_THAT(refusal_of(folder), HasSubstr("bos_token"));
  put(folder / "tokenizer_config.json", R"({"add_eos_token": true})");
  EXPECT_THAT(refusal_of(folder), HasSubstr("add_eos_token"));
  put(folder / "tokenizer_config.json", R"({"add_prefix_space": true})");
  EXPECT_THAT(refusal_of(folder), HasSubstr("add_prefix_space"));

  auto after = nlohmann::json::parse(text);
  after["post_processor"] = nlohmann::json::parse(R"({"type": "TemplateProcessing",
    "single": [{"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "<|endoftext|>"}}],
    "special_tokens": {"<|endoftext|>": {"ids": [0]}}})");
  put(folder / "tokenizer.json", after.dump());
  put(folder / "tokenizer_config.json", "{}");
  EXPECT_THAT(refusal_of(folder), HasSubstr("after the text"));
  put(folder / "tokenizer_config.json", R"({"add_eos_token": false})");
  EXPECT_EQ(*folder_of(folder)->encode("Once upon"), plain);
}

TEST(RegressFilesBesideATokenizerJson, AddedTokensDecoderChangesFlags) {
  const TempFolder folder;
  put(folder / "tokenizer.json", slurp(std::string(KVASIR_SOURCE_DIR) + "/models/tales/tokenizer.json"));
  put(folder / "tokenizer_config.json",
      R"({"added_tokens_decoder": {"0": {"content": "<|endoftext|>", "special": true, "rstrip": true},
                                   "4096": {"content": "[PAD]", "special": true}}})");
  const TokenizerPtr tokenizer = folder_of(folder);
  EXPECT_THAT(*tokenizer->encode("<|endoftext|>  [PAD]"), ElementsAre(0, 4096));
  put(folder / "tokenizer_config.json", R"({"added_tokens_decoder": {"1": {"content": "<|endoftext|>"}}})");
  EXPECT_THAT(refusal_of(folder), AllOf(HasSubstr("<|endoftext|>"), HasSubstr("id 1"), HasSubstr("id 0")));
}

}  // namespace
}  // namespace kvasir
