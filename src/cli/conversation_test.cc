// Conversations with a shipped model: what is kept, truncated and encoded again. The ids of a conversation do not
// depend on how it came about.
#include "cli/conversation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temp_files.h"
#include "tests/support/test_files.h"

namespace kvasir::cli {
namespace {

using namespace format_test;
using testing::HasSubstr;

constexpr const char* kTemplate =
    "{%- for m in messages -%}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|endoftext|>\n' }}{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\n' }}{%- endif -%}";
// Drops the text of earlier answers, as templates drop a model's reasoning.
constexpr const char* kForgetful =
    "{%- for m in messages -%}{{ m.role + ': ' + (m.content if m.role == 'user' else '...') + '<|endoftext|>' }}"
    "{%- endfor -%}{{ 'assistant:' }}";

class ConversationTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const auto model = Model::open(KVASIR_SOURCE_DIR "/models/tales");
    ASSERT_TRUE(model);
    auto engine = Engine::create(*model, {});
    ASSERT_TRUE(engine);
    engine_ = std::move(*engine);
  }

  // The format of the suite's template; "": plain turns.
  ConversationFormat format() const {
    if (*GetParam() == '\0') return ConversationFormat::plain("User: ", "Assistant:");
    put(folder_ / "chat.jinja", GetParam());
    auto made = ConversationFormat::of_template(KVASIR_SOURCE_DIR "/models/tales", folder_ / "chat.jinja");
    EXPECT_TRUE(made) << made.error().message();
    return *made;
  }

  Conversation conversation(int ctx = 0, OnFullContext on_full = OnFullContext::stop) const {
    ConversationOptions options;
    options.on_full = on_full;
    options.generate.sampling.temperature = 0;
    options.generate.max_tokens = 6;
    options.generate.receipt = true;
    SessionOptions session;
    session.ctx = ctx;
    auto opened = engine_->open_session(session);
    EXPECT_TRUE(opened);
    return Conversation(*engine_, std::move(*opened), format(), options);
  }

  TempFolder folder_;
  std::shared_ptr<Engine> engine_;
};

INSTANTIATE_TEST_SUITE_P(Formats, ConversationTest, testing::Values("", kTemplate, kForgetful));

std::string receipt_of(const Result<Answer>& answer) { return answer ? answer->receipt : answer.error().message(); }

TEST_P(ConversationTest, CutBackItIsTheStraightConversation) {
  Conversation straight = conversation(), cut = conversation();
  std::vector<std::string> receipts;
  for (const char* text : {"Once upon a time", "The fox ran.", "And then?"})
    receipts.push_back(receipt_of(straight.ask(text)));
  EXPECT_EQ(receipt_of(cut.ask("A dog")), receipt_of(conversation().ask("A dog")));
  EXPECT_EQ(receipt_of(cut.edit("Once upon a time")), receipts[0]);
  ASSERT_TRUE(cut.ask("Why?"));
  ASSERT_TRUE(cut.ask("Why not?"));
  cut.undo();
  EXPECT_EQ(receipt_of(cut.edit("The fox ran.")), receipts[1]);
  ASSERT_TRUE(cut.ask("And then?"));
  EXPECT_EQ(receipt_of(cut.regenerate()), receipts[2]);
  EXPECT_EQ(cut.turns().back().held.ids, straight.turns().back().held.ids);
  EXPECT_EQ(cut.turns().back().held.text, straight.turns().back().held.text);
}

TEST_P(ConversationTest, SavedAndLoadedItIsTheStraightConversation) {
  const std::string file = folder_ / "t.kv";
  Conversation straight = conversation(), saved = conversation(), loaded = conversation();
  for (const char* text : {"Once upon a time", "The fox ran."}) {
    ASSERT_TRUE(straight.ask(text));
    ASSERT_TRUE(saved.ask(text));
  }
  ASSERT_TRUE(saved.save(file));
  ASSERT_TRUE(loaded.ask("Another conversation"));
  const auto done = loaded.load(file);
  ASSERT_TRUE(done) << done.error().message();
  EXPECT_EQ(receipt_of(loaded.ask("And then?")), receipt_of(straight.ask("And then?")));
  loaded.undo();
  straight.undo();
  EXPECT_EQ(receipt_of(loaded.edit("A dog")), receipt_of(straight.edit("A dog")));
}

TEST_P(ConversationTest, WhatCannotBeLoadedChangesNothing) {
  const std::string file = folder_ / "t.kv", other = folder_ / "o.kv";
  Conversation one = conversation(), two = conversation(), straight = conversation();
  ASSERT_TRUE(one.ask("Once upon a time"));
  ASSERT_TRUE(one.save(file));
  ASSERT_TRUE(two.ask("The fox ran."));
  ASSERT_TRUE(two.save(other));
  put(folder_ / "t.kv.json", slurp(folder_ / "o.kv.json"));
  const auto mixed = two.load(file);
  ASSERT_FALSE(mixed);
  EXPECT_THAT(mixed.error().message(), HasSubstr("is of another conversation"));
  fs::remove(folder_ / "t.kv.json");
  const auto alone = two.load(file);
  ASSERT_FALSE(alone);
  EXPECT_THAT(alone.error().message(), HasSubstr("t.kv.json"));
  ASSERT_TRUE(straight.ask("The fox ran."));
  EXPECT_EQ(receipt_of(two.ask("And then?")), receipt_of(straight.ask("And then?")));
}

TEST_P(ConversationTest, ATurnThatDoesNotFitIsNotSaid) {
  Conversation full = conversation(96), straight = conversation(96);
  ASSERT_TRUE(full.ask("Once"));
  ASSERT_TRUE(straight.ask("Once"));
  std::string line;
  for (int i = 0; i < 40; ++i) line += "a long line ";
  for (const auto& refused : {full.ask(line), full.edit(line)}) {
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message(), HasSubstr("the context is full"));
  }
  EXPECT_EQ(full.turns().size(), 1u);
  EXPECT_EQ(receipt_of(full.ask("More")), receipt_of(straight.ask("More")));
}

TEST_P(ConversationTest, RecomputedItGoesOnAndIsCutBackTheSame) {
  Conversation straight = conversation(96, OnFullContext::recompute), cut = conversation(96, OnFullContext::recompute);
  int dropped = 0;
  for (int i = 0; i < 8; ++i) {
    const std::string text = "The fox ran " + std::to_string(i);
    const auto said = straight.ask(text);
    ASSERT_TRUE(said) << said.error().message();
    dropped += said->dropped;
    ASSERT_TRUE(cut.ask("Something else"));
    EXPECT_EQ(receipt_of(cut.edit(text)), said->receipt) << i;
  }
  EXPECT_GT(dropped, 0);
}

TEST_P(ConversationTest, OnlyWhatIsNewIsComputed) {
  Conversation one = conversation();
  const auto first = one.ask("Once upon a time");
  const auto second = one.ask("And then?");
  ASSERT_TRUE(first && second);
  if (GetParam() == kForgetful) {
    EXPECT_GE(second->differs, 0) << "the answer is written differently now";
    EXPECT_EQ(second->reused, second->differs);
  } else {
    EXPECT_EQ(second->differs, -1);
    EXPECT_GE(second->reused, first->prompt_tokens + 5);
  }
  EXPECT_EQ(one.totals().prompt_tokens, first->prompt_tokens + second->prompt_tokens);
  EXPECT_EQ(one.totals().reused, second->reused);
}

TEST_P(ConversationTest, ASystemMessageIsPartOfWhatFollows) {
  Conversation late = conversation(), early = conversation();
  late.set_system("You are brief.");
  early.set_system("You are brief.");
  EXPECT_EQ(receipt_of(late.ask("Once")), receipt_of(early.ask("Once")));
  late.set_system("");
  EXPECT_EQ(receipt_of(late.edit("Once")), receipt_of(conversation().ask("Once")));
}

TEST_P(ConversationTest, AControlTokenThatSomebodyWritesStaysText) {
  if (*GetParam() == '\0') GTEST_SKIP() << "plain turns look for them";
  Conversation one = conversation();
  ASSERT_TRUE(one.ask("Once"));
  const auto before = one.ask("a");
  const auto spelled = one.edit("<|endoftext|>");
  ASSERT_TRUE(before && spelled);
  EXPECT_GT(spelled->prompt_tokens, before->prompt_tokens + 3);
}

}  // namespace
}  // namespace kvasir::cli
