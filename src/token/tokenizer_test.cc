// Real vocabularies: the shipped one, and llama.cpp's test vectors if the outside data is present.
#include <kvasir/tokenizer.h>

#include <chrono>
#include <cstdio>
#include <iterator>
#include <random>
#include <thread>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/support/random_text.h"
#include "tests/support/test_files.h"
#include "token/normalize.h"
#include "token/utf8.h"

namespace kvasir {
namespace {

using token_test::data_folder;
using token_test::read;
using TokenizerPtr = std::shared_ptr<const Tokenizer>;

TokenizerPtr must(Result<TokenizerPtr> made) {
  EXPECT_TRUE(made.has_value()) << made.error().message();
  return made ? *made : nullptr;
}

TokenizerPtr tales() {
  static const TokenizerPtr made =
      must(Tokenizer::from_json(std::filesystem::path(KVASIR_SOURCE_DIR) / "models/tales/tokenizer.json"));
  return made;
}

TokenizerPtr outside_json(const std::string& name) {
  const auto path = data_folder() / "tokenizers" / name / "tokenizer.json";
  return std::filesystem::exists(path) ? must(Tokenizer::from_json(path)) : nullptr;
}

TokenizerPtr stories() {
  const auto path = data_folder() / "models/stories260K/tok512.bin";
  return std::filesystem::exists(path) ? must(Tokenizer::from_llama2c(path, 512)) : nullptr;
}

const std::vector<std::string>& odd_texts() {
  static const std::vector<std::string> texts = {
      "",
      " ",
      "Once upon a time, there was a fox.",
      "  two  spaces\t\ttabs\n\n\nlines\r\n ",
      "I'm you're we've they'll he'd it's 'Sx",
      "naïve café Ελληνικά русский עברית",
      "日本語の文章。中文，标点！한국어",
      "\U0001F600\U0001F468\u200D\U0001F469\u200D\U0001F467 \U0001F1EF\U0001F1F5",
      std::string("nul\0inside\x01\x1F\x7F", 13),
      "e\u0301 \u00E9 \u180E\u2003\u3000 \u200B",
      "\xFF\xFE broken \xC3( \xE2\x82 \xF0\x9F\x98 \xED\xA0\x80 \xC0\xAF end\xE2",
      "<|endoftext|>a<|endoftext|><|endoftext|>",
  };
  return texts;
}

TEST(Tokenizer, ShippedVocabularyRoundTripsEveryText) {
  const auto tokenizer = tales();
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ(tokenizer->vocab_size(), 4096);
  for (const std::string& text : odd_texts()) {
    const auto ids = tokenizer->encode(text);
    ASSERT_TRUE(ids) << ids.error().message();
    EXPECT_EQ(tokenizer->decode(*ids).value(), text);
  }
}

TEST(Tokenizer, ShippedVocabularyRoundTripsRandomBytes) {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    std::string text(random() % 200, '\0');
    for (char& byte : text) byte = static_cast<char>(static_cast<unsigned char>(random() % 256));
    const auto ids = tales()->encode(text);
    ASSERT_TRUE(ids) << ids.error().message();
    ASSERT_EQ(tales()->decode(*ids).value(), text);
  }
}

TEST(Tokenizer, IllFormedBytesAreTheirOwnTokens) {
  const auto ids = tales()->encode("a\xE2\x82").value();
  ASSERT_EQ(ids.size(), 3u);
  EXPECT_EQ(tales()->token_text(ids[1]), "\xE2");
  EXPECT_EQ(tales()->token_text(ids[2]), "\x82");
}

TEST(Tokenizer, IdsOutsideTheVocabularyAreErrorsWithBothNumbers) {
  const std::vector<int> bad = {5, 4096};
  EXPECT_THAT(tales()->decode(bad).error().what, testing::AllOf(testing::HasSubstr("4096"), testing::HasSubstr("id")));
  EXPECT_FALSE(tales()->decode(std::vector<int>{-1}));
  EXPECT_EQ(tales()->token_text(-1), "");
  EXPECT_EQ(tales()->token_text(1 << 30), "");
  EXPECT_EQ(tales()->piece(4096), "");
  EXPECT_FALSE(tales()->is_special(4096));
}

TEST(Tokenizer, PiecesAreFoundByTheirSpelling) {
  ASSERT_TRUE(tales()->find("Ġthe"));
  const int the = *tales()->find("Ġthe");
  EXPECT_EQ(tales()->piece(the), "Ġthe");
  EXPECT_EQ(tales()->token_text(the), " the");
  EXPECT_FALSE(tales()->is_special(the));
  EXPECT_FALSE(tales()->find(" the"));
  EXPECT_EQ(tales()->find("<|endoftext|>"), 0);
  EXPECT_TRUE(tales()->is_special(0));
  EXPECT_FALSE(tales()->bos());
  EXPECT_FALSE(tales()->unk());
}

TEST(Tokenizer, MissingFileSaysWhere) {
  const auto made = Tokenizer::from_json("no/such/tokenizer.json");
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message(), testing::HasSubstr("no/such/tokenizer.json"));
}

// Texts and ids as llama.cpp's own tests store them: 46 texts, each followed by a separator line, and a line of ids for
// each.
void expect_vectors(const Tokenizer& tokenizer, const std::string& name) {
  constexpr std::string_view kSeparator = "\n__ggml_vocab_test__\n";
  const std::string input = read(data_folder() / "tokenizers/vectors" / (name + ".inp"));
  std::istringstream lines(read(data_folder() / "tokenizers/vectors" / (name + ".out")));
  std::size_t begin = 0;
  int held = 0;
  for (std::string line; std::getline(lines, line); ++held) {
    const std::size_t end = input.find(kSeparator, begin);
    ASSERT_NE(end, input.npos);
    const std::string text = input.substr(begin, end - begin);
    std::istringstream numbers(line);
    const std::vector<int> expected{std::istream_iterator<int>(numbers), {}};
    const auto ids = tokenizer.encode(text, false);
    ASSERT_TRUE(ids) << ids.error().message();
    EXPECT_EQ(*ids, expected) << "text " << held << ": " << text;
    EXPECT_EQ(tokenizer.decode(*ids).value(), text);
    begin = end + kSeparator.size();
  }
  EXPECT_EQ(held, 46);
  EXPECT_EQ(begin, input.size());
}

TEST(Tokenizer, Gpt2MatchesEveryVector) {
  const auto tokenizer = outside_json("gpt2");
  if (!tokenizer) GTEST_SKIP() << "outside data folder is absent";
  EXPECT_EQ(tokenizer->vocab_size(), 50257);
  expect_vectors(*tokenizer, "ggml-vocab-gpt-2.gguf");
}

TEST(Tokenizer, Qwen3MatchesEveryQwen2Vector) {
  const auto tokenizer = outside_json("qwen3");
  if (!tokenizer) GTEST_SKIP() << "outside data folder is absent";
  EXPECT_EQ(tokenizer->vocab_size(), 151669);
  expect_vectors(*tokenizer, "ggml-vocab-qwen2.gguf");
}

TEST(Tokenizer, RandomTextsRoundTripInRealVocabularies) {
  const auto gpt2 = outside_json("gpt2");
  const auto qwen3 = outside_json("qwen3");
  if (!gpt2 || !qwen3) GTEST_SKIP() << "outside data folder is absent";
  std::mt19937 random(37);
  for (int round = 0; round < 1000; ++round) {
    const std::string text = token_test::random_text(random, 30);
    ASSERT_EQ(gpt2->decode(gpt2->encode(text).value()).value(), text);
    ASSERT_EQ(qwen3->decode(qwen3->encode(text).value()).value(), to_nfc(text).value());
  }
}

TEST(Tokenizer, Qwen3NormalisesToNfc) {
  const auto tokenizer = outside_json("qwen3");
  if (!tokenizer) GTEST_SKIP() << "outside data folder is absent";
  EXPECT_EQ(tokenizer->encode("cafe\u0301 \u1112\u1161\u11AB").value(), tokenizer->encode("caf\u00E9 \uD55C").value());
  const auto chat = tokenizer->encode("<|im_start|>user\nhi<|im_end|>").value();
  EXPECT_EQ(chat.front(), 151644);
  EXPECT_EQ(chat.back(), 151645);
}

TEST(Tokenizer, SmolLm2NamesTheByteThatHasNoToken) {
  const auto tokenizer = outside_json("smollm2");
  if (!tokenizer) GTEST_SKIP() << "outside data folder is absent";
  EXPECT_EQ(tokenizer->vocab_size(), 49152);
  EXPECT_EQ(tokenizer->encode("In 2024").value().size(), 6u);  // "In", the space, four digits
  int missing = 0;
  for (int byte = 0; byte < 256; ++byte) {
    const std::string text = {'x', static_cast<char>(static_cast<unsigned char>(byte))};
    const auto ids = tokenizer->encode(text);
    if (ids) continue;
    ++missing;
    char name[8];
    std::snprintf(name, sizeof name, "0x%02X", static_cast<unsigned>(byte));
    EXPECT_THAT(ids.error().what, testing::AllOf(testing::HasSubstr(name), testing::HasSubstr("offset 1")));
  }
  EXPECT_EQ(missing, 21);
}

TEST(Tokenizer, Stories260kMatchesRunC) {
  const auto tokenizer = stories();
  if (!tokenizer) GTEST_SKIP() << "outside data folder is absent";
  const auto reference = nlohmann::json::parse(read(data_folder() / "models/stories260K/reference_logits.json"));
  ASSERT_FALSE(reference["prompts"].empty());
  for (const auto& prompt : reference["prompts"]) {
    const auto text = prompt["text"].get<std::string>();
    const auto ids = tokenizer->encode(text).value();
    EXPECT_EQ(ids, prompt["ids_with_bos"].get<std::vector<int>>()) << text;
    EXPECT_EQ(tokenizer->decode(ids).value(), text);
  }
  for (const std::string& text : odd_texts()) {
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text).value()).value(), text);
  }
}

// Returns `text` with U+FFFD for each ill-formed sequence: a stream must print this for the decoded whole.
std::string replace_ill_formed(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const Utf8Step step = utf8_step(text);
    out += step.kind == Utf8Kind::kChar ? std::string(text.substr(0, step.length)) : "\uFFFD";
    text.remove_prefix(step.length);
  }
  return out;
}

void expect_streams(const TokenizerPtr& tokenizer, int rounds) {
  std::mt19937 random(7);
  StreamDecoder stream(tokenizer);
  for (int round = 0; round < rounds; ++round) {
    std::vector<int> ids(1 + random() % 40);
    // Half of the rounds are mostly byte tokens, which make and break characters.
    const auto range = static_cast<unsigned>(round % 2 == 0 ? tokenizer->vocab_size() : 260);
    for (int& id : ids) id = static_cast<int>(random() % range);
    // A stream may begin in mid-text, so only BOS tells it that a space is the encoder's own.
    ids[0] = tokenizer->bos().value_or(ids[0]);
    std::string text;
    for (const int id : ids) {
      const std::string part = stream.push(id);
      EXPECT_EQ(utf8_valid_prefix(part), part.size());
      text += part;
    }
    text += stream.finish();
    ASSERT_EQ(text, replace_ill_formed(tokenizer->decode(ids).value()));
  }
}

TEST(StreamDecoder, PushesAreWholeCharactersAndAddUpToDecode) {
  expect_streams(tales(), 500);
  if (const auto tokenizer = stories()) expect_streams(tokenizer, 500);
  if (const auto tokenizer = outside_json("gpt2")) expect_streams(tokenizer, 500);
}

TEST(StreamDecoder, HoldsBackAndGivesUpWhereUtf8Does) {
  const auto id = [](const char* bytes) { return tales()->encode(bytes).value().at(0); };
  StreamDecoder stream(tales());
  EXPECT_EQ(stream.push(id("\xF0")), "");
  EXPECT_EQ(stream.push(id("\x9F")), "");
  EXPECT_EQ(stream.push(id("\x98")), "");
  EXPECT_EQ(stream.push(id("\x80")), "\U0001F600");
  EXPECT_EQ(stream.push(id("\xFF")), "\uFFFD");
  EXPECT_EQ(stream.push(id("\xE2")), "");
  EXPECT_EQ(stream.push(id("a")), "\uFFFDa");
  EXPECT_EQ(stream.push(id("\xE2")), "");
  EXPECT_EQ(stream.finish(), "\uFFFD");
  EXPECT_EQ(stream.finish(), "");
  EXPECT_EQ(stream.push(1 << 30), "");
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Generous bounds: they catch a quadratic algorithm, not a slow machine.
TEST(Tokenizer, LongTextsTakeLinearTime) {
  const auto start = std::chrono::steady_clock::now();
  const std::string word = [] {
    std::mt19937 random(3);
    std::string text(1 << 20, 'a');
    for (char& c : text) c = static_cast<char>('a' + random() % 26);
    return text;
  }();
  for (const std::string& text :
       {word, std::string(1 << 20, 'a'), std::string(1 << 20, ' '), std::string(1 << 20, '\n'),
        std::string(1 << 20, '\xFF'), std::string(1 << 20, '<')}) {
    const auto ids = tales()->encode(text);
    ASSERT_TRUE(ids) << ids.error().message();
    EXPECT_EQ(tales()->decode(*ids).value(), text);
  }
  EXPECT_LT(seconds_since(start), 20);
}

TEST(ThreadsTokenizer, OneTokenizerServesManyThreads) {
  const auto tokenizer = tales();
  const std::string text = odd_texts()[2] + odd_texts()[6];
  const auto expected = tokenizer->encode(text).value();
  std::vector<std::thread> threads;
  std::vector<int> equal(4, 0);
  for (int& count : equal) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) count += tokenizer->encode(text).value() == expected ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(equal, testing::Each(50));
}

}  // namespace
}  // namespace kvasir
