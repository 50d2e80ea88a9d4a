// Special tokens by name and by number: tokens that end a text, tokens without a row of weights, and further keys of a
// GGUF tokenizer.
#include <filesystem>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <kvasir/engine.h>
#include <kvasir/generate.h>

#include "engine/gguf_tokenizer.h"
#include "lab/perplexity.h"
#include "lab/quantize.h"
#include "tests/support/engines.h"
#include "tests/support/gguf_bytes.h"
#include "tests/support/gguf_models.h"
#include "token/files/gguf_vocab.h"
#include "token/tokenizer_impl.h"

namespace kvasir {
namespace {

using engine_test::greedy_tokens;
using gguf_test::Bytes;
using gguf_test::head;
using nlohmann::json;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using tiny::message_of;
using tiny::put;
using tiny::slurp;
using tiny::TempFolder;

const std::string kTales = KVASIR_SOURCE_DIR "/models/tales";

// A copy of tales whose tokenizer.json and generation_config.json the test may change.
class Tales {
 public:
  Tales() {
    std::filesystem::copy(kTales, folder_ / "m");
    tokenizer = json::parse(slurp(folder_ / "m/tokenizer.json"));
  }
  void write() const { put(folder_ / "m/tokenizer.json", tokenizer.dump()); }
  void config(const json& config) const { put(folder_ / "m/generation_config.json", config.dump()); }
  // Replaces the token " and" by one that no merge makes.
  int replace_and(const std::string& content, bool added, bool special) {
    const std::string word = "\u0120and";
    json& model = tokenizer["model"];
    const int id = model["vocab"][word];
    model["vocab"].erase(word);
    model["vocab"][content] = id;
    json merges = json::array();
    for (const json& merge : model["merges"]) {
      const std::string pair =
          merge.is_string() ? merge.get<std::string>() : std::string(merge[0]) + " " + std::string(merge[1]);
      std::string whole = pair;
      whole.erase(whole.find(' '), 1);
      if (whole != word && !pair.starts_with(word + " ") && !pair.ends_with(" " + word)) merges.push_back(merge);
    }
    model["merges"] = merges;
    if (added)
      tokenizer["added_tokens"].push_back(
          {{"id", id}, {"content", content}, {"special", special}, {"normalized", false}});
    write();
    return id;
  }
  std::string path() const { return (folder_ / "m").string(); }
  std::string gguf() const {
    const auto report =
        quantize({.model = path(), .out = folder_ / "m.gguf", .type = "bf16", .force = true, .threads = 1});
    EXPECT_TRUE(report) << message_of(report);
    return (folder_ / "m.gguf").string();
  }
  TempFolder folder_;
  tiny::ScopedEnv remembered_{"XDG_CACHE_HOME", (folder_ / "cache").string()};
  json tokenizer;
};

std::vector<int> eos_of(const std::string& path) {
  const auto model = Model::open(path);
  EXPECT_TRUE(model) << message_of(model);
  return model ? (*model)->info().eos : std::vector<int>();
}

Generation story(const std::string& path, int tokens) {
  const auto model = Model::open(path);
  EXPECT_TRUE(model) << message_of(model);
  const auto engine = Engine::create(*model, {.threads = 1});
  auto session = (*engine)->open_session({.ctx = 64});
  GenerateOptions options = greedy_tokens(tokens);
  options.ignore_eos = false;
  const auto g = generate(**engine, *session, *(*model)->tokenizer()->encode("Once upon a time"), options);
  EXPECT_TRUE(g) << message_of(g);
  return g.value_or(Generation{});
}

// ---- end of turn by name ------------------------------------------------------------------------------------------

TEST(RegressEndOfTurnByName, AControlTokenWithAKnownTextEndsTheText) {
  Tales tales;
  const int id = tales.replace_and("<|im_end|>", true, true);
  EXPECT_THAT(eos_of(tales.path()), ElementsAre(0, id));
  const std::string file = tales.gguf();
  EXPECT_THAT(eos_of(file), ElementsAre(0, id));
  for (const std::string& path : {tales.path(), file}) {
    const Generation g = story(path, 8);
    EXPECT_EQ(g.stop_reason, StopReason::eos) << path;
    EXPECT_EQ(g.tokens.back(), id);
    EXPECT_EQ(g.text, ",");
  }
}

TEST(RegressEndOfTurnByName, AWordOfTheVocabularyDoesNot) {
  Tales tales;
  tales.replace_and("<|im_end|>", false, false);
  EXPECT_THAT(eos_of(tales.path()), ElementsAre(0));
}

TEST(RegressEndOfTurnByName, AFolderThatNamesTwoOrMoreNamesThemAll) {
  Tales tales;
  const int id = tales.replace_and("<|end|>", true, true);
  tales.config({{"eos_token_id", {0, 7}}});
  EXPECT_THAT(eos_of(tales.path()), ElementsAre(0, 7));
  EXPECT_THAT(eos_of(tales.gguf()), ElementsAre(0, 7));
  tales.config({{"eos_token_id", -1}});
  EXPECT_THAT(eos_of(tales.path()), ElementsAre(0, id)) << "both are known by their texts";
}

Bytes small(uint64_t more, const std::vector<std::string>& tokens, const std::vector<int32_t>& types) {
  Bytes b = head(0, 5 + more);
  b.array("tokenizer.ggml.tokens", GgufType::string, tokens.size());
  for (const std::string& text : tokens) b.string(text);
  b.array("tokenizer.ggml.merges", GgufType::string, 1).string("a b");
  b.text_entry("tokenizer.ggml.model", "gpt2").text_entry("tokenizer.ggml.pre", "gpt-2");
  b.array("tokenizer.ggml.token_type", GgufType::i32, types.size());
  for (const int32_t type : types) b.number(type);
  return b;
}

Result<std::shared_ptr<const Tokenizer>> opened(const Bytes& bytes) {
  const TempFolder folder;
  put(folder / "t.gguf", bytes.data);
  return open_gguf_tokenizer(folder / "t.gguf");
}

TEST(RegressEndOfTurnByName, EveryTextOfTheListAndItsTwoExceptions) {
  const std::vector<std::string> texts = {
      "<|eot_id|>", "<|im_end|>", "<|end|>",         "<end_of_turn>",      "<|endoftext|>", "<|eom_id|>", "<EOT>",
      "_<EOT>",     "[EOT]",      "<|end_of_text|>", "<end_of_utterance>", "</s>",          "<eos>"};
  for (const std::string& text : texts) {
    SCOPED_TRACE(text);
    for (const int32_t type : {3, 4}) {
      const auto tokenizer = opened(small(0, {"a", "b", "ab", text}, {1, 1, 1, type}));
      ASSERT_TRUE(tokenizer) << message_of(tokenizer);
      EXPECT_THAT((*tokenizer)->end_of_turn(), ElementsAre(3));
    }
    EXPECT_THAT((*opened(small(0, {"a", "b", "ab", text}, {1, 1, 1, 1})))->end_of_turn(), IsEmpty());
    Bytes named = small(1, {"a", "b", "ab", text}, {1, 1, 1, 3});
    named.entry("tokenizer.ggml.eot_token_id", GgufType::u32, uint32_t{2});
    EXPECT_THAT((*opened(named))->end_of_turn(), IsEmpty());
  }
  EXPECT_THAT(
      (*opened(small(0, {"a", "b", "ab", "<|end|>", "<|return|>", "<|call|>"}, {1, 1, 1, 3, 3, 3})))->end_of_turn(),
      ElementsAre(4, 5));
  EXPECT_THAT((*opened(small(0, {"a", "b", "ab", "</s>", "<|tool_response>"}, {1, 1, 1, 3, 3})))->end_of_turn(),
              ElementsAre(4));
}

// The real file names only 32000 as eos, but its turns end with <|end|>.
TEST(RegressEndOfTurnByName, Phi3) {
  if (tiny::outside_data().empty()) GTEST_SKIP() << "outside data folder is absent";
  const auto phi3 = open_gguf_tokenizer(tiny::outside_data() / "tokenizers/vectors/ggml-vocab-phi-3.gguf");
  ASSERT_TRUE(phi3) << message_of(phi3);
  EXPECT_THAT((*phi3)->end_of_turn(), AllOf(Contains(32007), Contains(32000)));
}

// ---- keys of a GGUF tokenizer -------------------------------------------------------------------------------------

using AddKey = std::function<void(Bytes&)>;

std::string error_with(const AddKey& add) {
  Bytes b = small(1, {"a", "b", "ab", "<|e|>"}, {1, 1, 1, 3});
  add(b);
  return message_of(opened(b));
}

std::vector<std::string> ignored_with(const AddKey& add, bool noted) {
  Bytes b = small(1, {"a", "b", "ab", "<|e|>"}, {1, 1, 1, 3});
  add(b);
  const auto tokenizer = opened(b);
  EXPECT_TRUE(tokenizer) << message_of(tokenizer);
  std::vector<std::string> names;
  for (const Ignored& part : (*tokenizer)->ignored())
    if (part.noted == noted) names.push_back(part.name);
  return names;
}

TEST(RegressGgufTokenizerKeys, WhatChangesIdsIsRefusedByName) {
  for (const std::string name :
       {"add_eos_token", "add_sep_token", "add_space_prefix", "remove_extra_whitespaces", "normalizer.lowercase"}) {
    const std::string key = "tokenizer.ggml." + name;
    EXPECT_THAT(error_with([&](Bytes& b) { b.entry(key, GgufType::boolean, uint8_t{1}); }), HasSubstr(key));
    EXPECT_EQ(error_with([&](Bytes& b) { b.entry(key, GgufType::boolean, uint8_t{0}); }), "no error");
  }
  const auto map = [](Bytes& b) { b.array("tokenizer.ggml.precompiled_charsmap", GgufType::u8, 1).number(uint8_t{7}); };
  EXPECT_THAT(error_with(map), HasSubstr("precompiled_charsmap"));
  const auto never = [](Bytes& b) { b.array("tokenizer.ggml.suppress_tokens", GgufType::i32, 1).number(int32_t{2}); };
  EXPECT_THAT(error_with(never), HasSubstr("suppress_tokens"));
  EXPECT_THAT(error_with([](Bytes& b) { b.entry("tokenizer.ggml.stranger", GgufType::u32, uint32_t{1}); }),
              HasSubstr("tokenizer.ggml.stranger"));
}

TEST(RegressGgufTokenizerKeys, WhatIsHarmlessIsListed) {
  for (const std::string name : {"padding_token_id", "seperator_token_id", "mask_token_id", "fim_pre_token_id",
                                 "prefix_token_id", "token_type_count"}) {
    const std::string key = "tokenizer.ggml." + name;
    const auto add = [&](Bytes& b) { b.entry(key, GgufType::u32, uint32_t{1}); };
    EXPECT_THAT(ignored_with(add, false), ElementsAre(key));
  }
  const auto add = [](Bytes& b) { b.text_entry("tokenizer.chat_template.tools", "{{x}}"); };
  EXPECT_THAT(ignored_with(add, false), ElementsAre("tokenizer.chat_template.tools"));
  const auto other = [](Bytes& b) { b.text_entry("tokenizer.stranger", "x"); };
  EXPECT_THAT(ignored_with(other, true), ElementsAre("tokenizer.stranger"));
}

TEST(RegressGgufTokenizerKeys, MinusOneIsNoToken) {
  for (const std::string name : {"bos", "eos", "eot", "unknown", "padding"}) {
    const std::string key = "tokenizer.ggml." + name + "_token_id";
    for (const bool is_signed : {false, true}) {
      const auto add = [&](Bytes& b) {
        if (is_signed)
          b.entry(key, GgufType::i32, int32_t{-1});
        else
          b.entry(key, GgufType::u32, uint32_t{0xffffffff});
      };
      EXPECT_THAT(ignored_with(add, true), ElementsAre(key));
    }
  }
  EXPECT_THAT(error_with([](Bytes& b) { b.entry("tokenizer.ggml.eos_token_id", GgufType::u32, uint32_t{4}); }),
              AllOf(HasSubstr("eos_token_id"), HasSubstr("4")));
}

TEST(RegressGgufTokenizerKeys, AModelWithoutEos) {
  const TempFolder folder;
  Bytes more;
  more.entry("tokenizer.ggml.bos_token_id", GgufType::u32, uint32_t{0xffffffff});
  std::string file = tiny::llama_gguf(tiny::llama(), 0, more, 1).data;
  const std::string key = "tokenizer.ggml.eos_token_id";
  const size_t value = file.find(key) + key.size() + sizeof(uint32_t);  // behind the type
  file.replace(value, sizeof(uint32_t), "\xff\xff\xff\xff");
  put(folder / "m.gguf", file);
  const auto model = Model::open((folder / "m.gguf").string());
  ASSERT_TRUE(model) << message_of(model);
  EXPECT_THAT((*model)->info().eos, IsEmpty());
  EXPECT_EQ((*model)->info().bos, std::nullopt);
}

// ---- tokens without a row -----------------------------------------------------------------------------------------

TEST(RegressTokenizerOneTokenMore, OpensAndRefusesATextThatHoldsIt) {
  Tales tales;
  tales.tokenizer["added_tokens"].push_back({{"id", 4096}, {"content", "[PAD]"}, {"special", true}});
  tales.write();
  const auto model = Model::open(tales.path());
  ASSERT_TRUE(model) << message_of(model);
  EXPECT_EQ(story(tales.path(), 4).tokens, story(kTales, 4).tokens);
  const auto engine = Engine::create(*model, {.threads = 1});
  auto session = (*engine)->open_session({.ctx = 64});
  const std::vector<int> ids = *(*model)->tokenizer()->encode("Once [PAD] upon");
  EXPECT_THAT(ids, Contains(4096));
  const auto named = AllOf(HasSubstr("4096"), HasSubstr("[PAD]"));
  EXPECT_THAT(message_of(generate(**engine, *session, ids, greedy_tokens(1))), named);
  EXPECT_THAT(message_of((*engine)->embed(*session, ids)), named);
  engine_test::Copied out;
  EXPECT_THAT(message_of(engine_test::prefill(**engine, *session, ids, &out)), named);
  EXPECT_EQ(session->pos(), 0);
  EXPECT_THAT(message_of(perplexity(**engine, std::vector<int>(64, 4096), {}, {.session = {.ctx = 32}})), named);
  const auto report = quantize({.model = tales.path(), .out = tales.folder_ / "m.gguf", .type = "f16", .threads = 1});
  EXPECT_THAT(message_of(report), named);
}

TEST(RegressTokenizerOneTokenMore, AnotherModelsVocabularyIsRefused) {
  Tales tales;
  for (int i = 0; i < 100; ++i) tales.tokenizer["model"]["vocab"]["word" + std::to_string(i)] = 4096 + i;
  tales.write();
  EXPECT_THAT(message_of(Model::open(tales.path())), AllOf(HasSubstr("4196"), HasSubstr("4096")));
}

// ---- Falcon's digits ----------------------------------------------------------------------------------------------

// In its tokenizer.json, Digits comes after ByteLevel and sees the spelling of the bytes. "½" is the bytes C2 BD; the
// second is spelled "½", which is a number, so the two never merge.
TEST(RegressFalcon, AHalfIsCutBetweenItsBytesAsByTokenizerJson) {
  json file = json::parse(R"({"version":"1.0","added_tokens":[],"normalizer":null,"post_processor":null,
    "pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Punctuation","behavior":"Contiguous"},
      {"type":"ByteLevel","add_prefix_space":false,"use_regex":true},{"type":"Digits","individual_digits":false},
      {"type":"Split","pattern":{"Regex":"[0-9][0-9][0-9]"},"behavior":"Isolated","invert":false}]},
    "decoder":{"type":"ByteLevel"},
    "model":{"type":"BPE","vocab":{"\u00c2":0,"\u00bd":1,"\u00c2\u00bd":2,"\u00a9":3,"\u00c2\u00a9":4},
      "merges":["\u00c2 \u00bd","\u00c2 \u00a9"]}})");
  const TempFolder folder;
  put(folder / "tokenizer.json", file.dump());
  const auto tokenizer = Tokenizer::from_json(folder / "tokenizer.json");
  ASSERT_TRUE(tokenizer) << message_of(tokenizer);
  const auto owned = gguf_vocab_of(model_of(**tokenizer), 5, {});
  ASSERT_TRUE(owned) << message_of(owned);
  EXPECT_EQ(owned->vocab.pre, "falcon");
  const auto gguf = make_tokenizer(std::move(*make_gguf_tokenizer(owned->vocab)));
  for (const auto& one : {*tokenizer, gguf}) {
    EXPECT_THAT(*one->encode("\u00bd"), ElementsAre(0, 1));
    EXPECT_THAT(*one->encode("\u00a9"), ElementsAre(4));
  }
}

}  // namespace
}  // namespace kvasir
