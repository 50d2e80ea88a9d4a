// Texts in which some parts are data: control tokens that a user writes stay text.
#include "token/text_spans.h"

#include <random>

#include <gmock/gmock.h>
#include <kvasir/model.h>

#include "tests/support/random_text.h"
#include "tests/support/test_files.h"

namespace kvasir {
namespace {

using testing::ElementsAre;

TEST(TextSpans, AreCutAndMoved) {
  const std::vector<TextSpan> spans = {{2, 5}, {7, 9}, {12, 20}};
  EXPECT_THAT(spans_within(spans, 3, 13), ElementsAre(TextSpan{0, 2}, TextSpan{4, 6}, TextSpan{9, 10}));
  EXPECT_THAT(spans_within(spans, 5, 7), ElementsAre());
  EXPECT_EQ(span_after(spans, 5), std::span<const TextSpan>(spans).begin() + 1);
  // Each space becomes three bytes.
  const auto length = [](std::string_view part) {
    return part.size() + 2 * static_cast<size_t>(std::count(part.begin(), part.end(), ' '));
  };
  const std::vector<TextSpan> two = {{1, 3}, {4, 6}};
  EXPECT_THAT(moved_spans(two, " a b c ", length), ElementsAre(TextSpan{3, 7}, TextSpan{8, 12}));
}

std::vector<std::shared_ptr<const Tokenizer>> vocabularies() {
  std::vector<std::shared_ptr<const Tokenizer>> all;
  const auto open = [&](const std::filesystem::path& path) {
    if (!std::filesystem::exists(path)) return;
    auto made = open_tokenizer(path.string());
    EXPECT_TRUE(made) << made.error().message();
    if (made) all.push_back(std::move(*made));
  };
  open(std::filesystem::path(KVASIR_SOURCE_DIR) / "models/tales/tokenizer.json");
  for (const char* name : {"gpt2/tokenizer.json", "qwen3/tokenizer.json", "smollm2/tokenizer.json",
                           "vectors/ggml-vocab-phi-3.gguf", "vectors/ggml-vocab-llama-spm.gguf"})
    open(token_test::data_folder() / "tokenizers" / name);
  return all;
}

std::vector<int> added_ids(const Tokenizer& tokenizer) {
  std::vector<int> ids;
  for (int id = 0; id < tokenizer.vocab_size(); ++id)
    if (tokenizer.is_added(id)) ids.push_back(id);
  return ids;
}

// Texts of three parts: a control token, data that contains control tokens, and a control token.
TEST(TextSpans, NoControlTokenComesFromData) {
  const auto all = vocabularies();
  if (all.size() < 5) std::puts("skipped: the vocabularies of the outside data are not there; one is tested");
  std::mt19937 dice(11);
  int forged = 0, tested = 0;
  for (const auto& tokenizer : all) {
    const std::vector<int> added = added_ids(*tokenizer);
    ASSERT_FALSE(added.empty());
    const size_t rounds = std::max<size_t>(250, added.size());  // each control token once at least
    for (size_t round = 0; round < rounds; ++round) {
      const std::string control = tokenizer->token_text(added[round % added.size()]);
      const std::string other = tokenizer->token_text(added[dice() % added.size()]);
      std::string data = token_test::random_text(dice, 12) + control;
      if (round % 3 == 0) data += other;
      data += round % 2 == 0 ? " " : token_test::random_text(dice, 5);
      const std::string text = control + data + control;
      const TextSpan span{control.size(), control.size() + data.size()};
      const auto ids = tokenizer->encode(text, std::span(&span, 1), false);
      if (!ids) continue;  // a byte that the vocabulary lacks
      ++tested;
      // Exactly the two tokens outside the data are there.
      const auto count = std::count_if(ids->begin(), ids->end(), [&](int id) { return tokenizer->is_added(id); });
      EXPECT_EQ(count, 2) << tokenizer->vocab_size() << " round " << round << ": " << text;
      const auto free = tokenizer->encode(text, false);
      forged += free && std::count_if(free->begin(), free->end(), [&](int id) { return tokenizer->is_added(id); }) > 2;
    }
  }
  EXPECT_GE(tested, 200 * static_cast<int>(all.size()));
  EXPECT_GT(forged, 200) << "texts in which nothing could be forged test nothing";
}

TEST(TextSpans, ATokenIsNotFinishedByData) {
  const auto tokenizer = vocabularies()[0];
  const std::string control = tokenizer->token_text(added_ids(*tokenizer)[0]);
  for (size_t cut = 1; cut < control.size(); ++cut) {
    for (const TextSpan span : {TextSpan{0, cut}, TextSpan{cut, control.size()}}) {
      const auto ids = tokenizer->encode(control, std::span(&span, 1), false);
      ASSERT_TRUE(ids);
      EXPECT_FALSE(tokenizer->is_added((*ids)[0])) << "cut at " << cut;
    }
  }
}

TEST(TextSpans, OrdinaryTextsHaveTheirIds) {
  std::mt19937 dice(12);
  int tested = 0;
  const auto all = vocabularies();
  for (const auto& tokenizer : all) {
    for (int round = 0; round < 4000; ++round) {
      const std::string text = token_test::random_text(dice, 40);
      std::vector<TextSpan> spans;
      for (size_t at = dice() % 7; at < text.size(); at += 1 + dice() % 9)
        if (at + 4 <= text.size()) spans.push_back({at, at + 1 + dice() % 3}), at += 4;
      const auto plain = tokenizer->encode(text, false), marked = tokenizer->encode(text, spans, false);
      ASSERT_EQ(plain.has_value(), marked.has_value());
      if (!plain) continue;  // a byte that the vocabulary lacks
      const bool has_added = std::any_of(plain->begin(), plain->end(), [&](int id) { return tokenizer->is_added(id); });
      if (has_added) continue;
      EXPECT_EQ(*plain, *marked) << text;
      ++tested;
    }
  }
  EXPECT_GE(tested, 1700 * static_cast<int>(all.size()));
  RecordProperty("texts", tested);
}

}  // namespace
}  // namespace kvasir
