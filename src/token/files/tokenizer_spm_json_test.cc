// The Llama 2 kind of tokenizer.json, hand-made and made from a real .model.
#include <sentencepiece_processor.h>

#include <algorithm>
#include <random>
#include <unordered_map>

#include <gmock/gmock.h>
#include <kvasir/tokenizer.h>
#include <nlohmann/json.hpp>

#include "tests/support/random_text.h"
#include "tests/support/test_files.h"

namespace kvasir {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using token_test::data_folder;
using token_test::JsonParts;
using token_test::TempFile;
using TokenizerPtr = std::shared_ptr<const Tokenizer>;
using Ids = std::vector<int>;

constexpr const char* kPrepend = R"({"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"▁"},
    {"type":"Replace","pattern":{"String":" "},"content":"▁"}]})";
constexpr const char* kDecoder = R"({"type":"Sequence","decoders":[
    {"type":"Replace","pattern":{"String":"▁"},"content":" "},{"type":"ByteFallback"},{"type":"Fuse"},
    {"type":"Strip","content":" ","start":1,"stop":0}]})";

std::string metaspace(const std::string& more) { return R"({"type":"Metaspace","replacement":"▁",)" + more + "}"; }

// 0 <unk>, 1 <s>, 2.. the bytes, 258 ▁, 259 a, 260 b, 261 ▁a, 262 ab, 263 ▁ab, 264 ▁▁.
JsonParts llama2() {
  JsonParts parts;
  parts.normalizer = kPrepend;
  parts.pre_tokenizer = "null";
  parts.decoder = kDecoder;
  parts.model_extra = R"("type":"BPE","unk_token":"<unk>","fuse_unk":true,"byte_fallback":true)";
  json vocab = {{"<unk>", 0}, {"<s>", 1}};
  for (int byte = 0; byte < 256; ++byte) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", static_cast<unsigned>(byte));
    vocab[name] = 2 + byte;
  }
  int id = 258;
  for (const char* piece : {"▁", "a", "b", "▁a", "ab", "▁ab", "▁▁"}) vocab[piece] = id++;
  parts.vocab = vocab.dump();
  parts.merges = R"([["a","b"],["▁","a"],["▁","ab"],["▁","▁"]])";
  parts.added = R"([{"id":0,"content":"<unk>","special":true,"normalized":false},
                    {"id":1,"content":"<s>","special":true,"normalized":false}])";
  parts.post_processor = R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>"}},
      {"Sequence":{"id":"A"}}],"special_tokens":{"<s>":{"id":"<s>","ids":[1]}}})";
  return parts;
}

Result<TokenizerPtr> load(const JsonParts& parts) { return Tokenizer::from_json(TempFile(parts.text()).path()); }

Ids encode(const JsonParts& parts, std::string_view text) {
  const auto tokenizer = load(parts);
  EXPECT_TRUE(tokenizer) << tokenizer.error().message();
  return tokenizer ? (*tokenizer)->encode(text, false).value() : Ids{};
}

std::string refusal(const JsonParts& parts) {
  const auto tokenizer = load(parts);
  return tokenizer ? "accepted" : tokenizer.error().message();
}

TEST(SpmJson, MergesByRankWithASpaceBeforeEveryStretch) {
  const auto tokenizer = load(llama2()).value();
  EXPECT_THAT(tokenizer->encode("ab a").value(), ElementsAre(1, 263, 261));
  EXPECT_THAT(tokenizer->encode("<s>ab<s> b").value(), ElementsAre(1, 263, 1, 264, 260));
  EXPECT_THAT(tokenizer->encode("").value(), ElementsAre(1));
  EXPECT_EQ(tokenizer->bos(), 1);
  EXPECT_EQ(tokenizer->unk(), 0);
  EXPECT_TRUE(tokenizer->is_special(1));
  EXPECT_EQ(tokenizer->decode(Ids{1, 263, 261}).value(), "<s>ab a");
  EXPECT_EQ(tokenizer->decode(Ids{263, 261}).value(), "ab a");
  EXPECT_EQ(tokenizer->vocab_size(), 265);
}

TEST(SpmJson, CharactersWithoutAPieceAreBytes) {
  const auto tokenizer = load(llama2()).value();
  EXPECT_THAT(tokenizer->encode("a\u00E9\xFF", false).value(), ElementsAre(261, 2 + 0xC3, 2 + 0xA9, 2 + 0xFF));
  std::mt19937 random(3);
  for (int round = 0; round < 500; ++round) {
    const std::string text = token_test::random_text(random, 20);
    if (text.find("\u2581") != text.npos) continue;
    ASSERT_EQ(tokenizer->decode(tokenizer->encode(text, false).value()).value(), text);
  }
}

TEST(SpmJson, WithoutByteFallbackACharacterIsUnkOrAnError) {
  JsonParts parts = llama2();
  parts.model_extra = R"("type":"BPE","unk_token":"<unk>","fuse_unk":true)";
  EXPECT_THAT(encode(parts, "a\u00E9za"), ElementsAre(261, 0, 259));
  parts.model_extra = R"("type":"BPE","unk_token":"<unk>")";
  EXPECT_THAT(encode(parts, "a\u00E9za"), ElementsAre(261, 0, 0, 259));
  parts.model_extra = R"("type":"BPE","unk_token":null)";
  EXPECT_THAT(load(parts).value()->encode("a b\u00E9").error().what, AllOf(HasSubstr("0xC3"), HasSubstr("offset 3")));
}

TEST(SpmJson, CharacterLevelVocabularies) {
  JsonParts parts;
  parts.pre_tokenizer = "null";
  parts.decoder = R"({"type":"Fuse"})";
  parts.model_extra = R"("type":"BPE","unk_token":"?")";
  parts.vocab = R"({"?":0,"a":1," ":2,"é":3})";
  parts.merges = "[]";
  EXPECT_THAT(encode(parts, "a é\u00E8日"), ElementsAre(1, 2, 3, 0, 0));
  EXPECT_EQ(load(parts).value()->decode(Ids{2, 1, 3}).value(), " aé");
}

TEST(SpmJson, MetaspaceSchemes) {
  JsonParts parts = llama2();
  parts.normalizer = "null";
  parts.pre_tokenizer = metaspace(R"("prepend_scheme":"always","split":false)");
  EXPECT_THAT(encode(parts, "a<s>a<s> a"), ElementsAre(261, 1, 261, 1, 261));
  EXPECT_THAT(encode(parts, "a   b"), ElementsAre(261, 264, 258, 260));
  parts.pre_tokenizer = metaspace(R"("prepend_scheme":"first","split":false)");
  EXPECT_THAT(encode(parts, "a<s>a"), ElementsAre(261, 1, 259));
  parts.pre_tokenizer = metaspace(R"("prepend_scheme":"never","split":false)");
  EXPECT_THAT(encode(parts, "a a"), ElementsAre(259, 261));
  parts.pre_tokenizer = metaspace(R"("prepend_scheme":"always")");
  EXPECT_THAT(encode(parts, "a   b"), ElementsAre(261, 258, 258, 258, 260));
  parts.pre_tokenizer = metaspace(R"("add_prefix_space":false)");
  EXPECT_THAT(encode(parts, "a"), ElementsAre(259));
  parts.pre_tokenizer = metaspace(R"("add_prefix_space":true)");
  EXPECT_THAT(encode(parts, "a"), ElementsAre(261));
  parts.decoder = metaspace(R"("prepend_scheme":"always")");
  parts.model_extra = R"("type":"BPE","unk_token":"<unk>")";
  EXPECT_EQ(load(parts).value()->decode(Ids{261, 264}).value(), "a  ");
}

constexpr const char* kReplace = R"({"type":"Replace","pattern":{"String":" "},"content":"▁"})";

// Gemma's kind: the normalizer leaves no space for the pre_tokenizer to split at.
JsonParts gemma() {
  JsonParts parts = llama2();
  parts.normalizer = kReplace;
  parts.pre_tokenizer = R"({"type":"Split","pattern":{"String":" "},"behavior":"MergedWithPrevious","invert":false})";
  parts.added = R"([{"id":1,"content":"<s>","special":true,"normalized":false},
                    {"id":264,"content":"▁▁","special":false,"normalized":false}])";
  return parts;
}

TEST(SpmJson, GemmasSplitCutsNothing) {
  const auto tokenizer = load(gemma()).value();
  EXPECT_THAT(tokenizer->encode("ab a").value(), ElementsAre(1, 262, 261));
  EXPECT_THAT(tokenizer->encode("a   b<s>a", false).value(), ElementsAre(259, 264, 258, 260, 1, 259));
  EXPECT_EQ(tokenizer->decode(Ids{259, 264, 258, 260}).value(), "a   b") << "added runs of U+2581 are spaces";
}

TEST(SpmJson, GemmasSplitIsOnlyKnownAfterItsReplace) {
  const auto with = [](const char* pre_tokenizer, const char* normalizer = kReplace) {
    JsonParts parts = gemma();
    parts.pre_tokenizer = pre_tokenizer;
    parts.normalizer = normalizer;
    return refusal(parts);
  };
  const std::string split = gemma().pre_tokenizer;
  EXPECT_EQ(with(split.c_str()), "accepted");
  EXPECT_THAT(with(split.c_str(), "null"), HasSubstr("Split"));
  EXPECT_THAT(with(split.c_str(), kPrepend), HasSubstr("Split"));
  EXPECT_THAT(with(R"({"type":"Split","pattern":{"String":" "},"behavior":"MergedWithNext"})"), HasSubstr("WithNext"));
  EXPECT_THAT(with(R"({"type":"Split","pattern":{"String":"a"},"behavior":"MergedWithPrevious"})"), HasSubstr("Split"));
  EXPECT_THAT(with(R"({"type":"Split","pattern":{"Regex":" "},"behavior":"MergedWithPrevious"})"), HasSubstr("Regex"));
  EXPECT_THAT(with(R"({"type":"Split","pattern":{"String":" "},"behavior":"MergedWithPrevious","invert":true})"),
              HasSubstr("invert"));
}

TEST(SpmJson, WholeWordsIgnoreMergesWhereTheFileSaysSo) {
  JsonParts parts = llama2();
  parts.merges = R"([["a","b"]])";
  EXPECT_THAT(encode(parts, "ab"), ElementsAre(258, 262));
  parts.model_extra += R"(,"ignore_merges":true)";
  EXPECT_THAT(encode(parts, "ab"), ElementsAre(263));
}

TEST(SpmJson, Phi3sAddedTokensSwallowWhatFollows) {
  JsonParts parts = llama2();
  parts.added = R"([{"id":300,"content":"<|user|>","special":true,"normalized":false,"rstrip":true}])";
  parts.post_processor = "null";
  EXPECT_THAT(encode(parts, "<|user|> \nab"), ElementsAre(300, 263));
}

TEST(SpmJson, UnknownPartsAreNamed) {
  const auto with = [](std::string JsonParts::*part, const std::string& value) {
    JsonParts parts = llama2();
    parts.*part = value;
    return refusal(parts);
  };
  EXPECT_EQ(refusal(llama2()), "accepted");
  EXPECT_THAT(with(&JsonParts::normalizer, R"({"type":"NFKC"})"), HasSubstr("NFKC"));
  EXPECT_THAT(with(&JsonParts::normalizer, R"({"type":"Prepend","prepend":"_"})"), HasSubstr("Prepend"));
  EXPECT_THAT(with(&JsonParts::normalizer, R"({"type":"Prepend","prepend":"▁"})"), HasSubstr("without Replace"));
  EXPECT_THAT(with(&JsonParts::normalizer, R"({"type":"Replace","pattern":{"Regex":" +"},"content":"▁"})"),
              HasSubstr("Replace"));
  EXPECT_THAT(with(&JsonParts::pre_tokenizer, metaspace(R"("prepend_scheme":"first")")), HasSubstr("together"));
  EXPECT_THAT(with(&JsonParts::pre_tokenizer, R"({"type":"Whitespace"})"), HasSubstr("Whitespace"));
  EXPECT_THAT(with(&JsonParts::pre_tokenizer, R"({"type":"Metaspace","replacement":"_"})"), HasSubstr("Metaspace"));
  EXPECT_THAT(with(&JsonParts::pre_tokenizer, metaspace(R"("prepend_scheme":"last")")), HasSubstr("last"));
  EXPECT_THAT(with(&JsonParts::pre_tokenizer, metaspace(R"("prepend_scheme":"first","add_prefix_space":false)")),
              HasSubstr("add_prefix_space"));
  EXPECT_THAT(with(&JsonParts::decoder, "null"), HasSubstr("decoder"));
  EXPECT_THAT(with(&JsonParts::decoder, R"({"type":"WordPiece"})"), HasSubstr("WordPiece"));
  EXPECT_THAT(with(&JsonParts::decoder, R"({"type":"Strip","content":" ","start":2,"stop":0})"), HasSubstr("Strip"));
  EXPECT_THAT(with(&JsonParts::decoder, R"({"type":"Fuse"})"), HasSubstr("U+2581"));
  EXPECT_THAT(with(&JsonParts::decoder, R"({"type":"Replace","pattern":{"String":"▁"},"content":" "})"),
              HasSubstr("ByteFallback"));
  EXPECT_THAT(with(&JsonParts::model_extra, R"("type":"Unigram")"), HasSubstr("Unigram"));
  EXPECT_THAT(with(&JsonParts::model_extra, R"("type":"BPE","dropout":0.5)"), HasSubstr("dropout"));
}

// The merges that Hugging Face's converter derives: every split of a piece into two, ordered by the piece's score, then
// by the longer left half.
json derived_merges(const std::vector<std::pair<std::string, float>>& pieces) {
  std::unordered_map<std::string, int> ids;
  for (const auto& [piece, score] : pieces) ids.emplace(piece, static_cast<int>(ids.size()));
  struct Split {
    float score;
    std::string left;
    std::string right;
  };
  std::vector<Split> splits;
  for (const auto& [piece, score] : pieces) {
    for (std::size_t at = 1; at < piece.size(); ++at) {
      if (utf8_is_continuation(piece[at])) continue;
      Split split{score, piece.substr(0, at), piece.substr(at)};
      if (ids.contains(split.left) && ids.contains(split.right)) splits.push_back(std::move(split));
    }
  }
  std::stable_sort(splits.begin(), splits.end(), [](const Split& a, const Split& b) {
    return std::pair(a.score, a.left.size()) > std::pair(b.score, b.left.size());
  });
  json merges = json::array();
  for (const Split& split : splits) merges.push_back({split.left, split.right});
  return merges;
}

TEST(SpmJson, ARealModelAsJsonGivesTheSameIds) {
  const auto path = data_folder() / "tokenizers/mistral/tokenizer.model.v1";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "outside data folder is absent";
  sentencepiece::SentencePieceProcessor library;
  ASSERT_TRUE(library.Load(path.string()).ok());
  std::vector<std::pair<std::string, float>> pieces;
  json vocab;
  for (int id = 0; id < library.GetPieceSize(); ++id) {
    vocab[library.IdToPiece(id)] = id;
    const bool whole = library.IsControl(id) || library.IsUnknown(id) || library.IsByte(id);
    if (!whole) pieces.emplace_back(library.IdToPiece(id), library.GetScore(id));
  }
  JsonParts parts = llama2();
  parts.vocab = vocab.dump();
  parts.merges = derived_merges(pieces).dump();
  parts.added = "[]";  // as in a .model, where no text becomes a control piece
  const auto ours = load(parts).value();
  EXPECT_EQ(ours->encode("").value(), Ids{1});
  std::mt19937 random(29);
  for (int round = 0; round < 1000; ++round) {
    const std::string text = token_test::random_text(random, 30);
    ASSERT_EQ(ours->encode(text, false).value(), library.EncodeAsIds(text)) << quote(text);
  }
  const std::string story = token_test::read(data_folder() / "text/tinystories_197K.txt");
  EXPECT_EQ(ours->encode(story, false).value() == library.EncodeAsIds(story), true);
}

}  // namespace
}  // namespace kvasir
