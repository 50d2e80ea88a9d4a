// Sessions saved and loaded: the same bits in any layout; a refused load leaves the session unchanged.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <random>

#include "base/clock.h"
#include "cache/layout.h"
#include "tests/support/engines.h"

namespace kvasir {
namespace {

using namespace engine_test;

std::vector<float> logits_after(Opened& opened, Session& session, std::span<const int> ids) {
  engine_test::Copied out;
  const auto done = engine_test::prefill(opened.engine(), session, ids, &out);
  EXPECT_TRUE(done) << message_of(done);
  return out.logits;
}

TEST(SessionFile, OfAnyLayoutGoesOnInAnyOther) {
  Opened opened(tiny::llama(), {.threads = 2, .prefill_chunk = 24});
  const std::string path = (opened.folder() / "s.kv").string();
  const std::vector<int> text = tiny::ids(110), more = tiny::ids(9, 4);
  for (const int window : {0, 30})
    for (const std::string& type : {std::string("f32"), std::string("q4_0h")}) {
      SessionOptions options{.kv_type_k = type, .kv_type_v = "q8_0", .window = window};
      std::vector<int> all = text;
      all.insert(all.end(), more.begin(), more.end());
      const std::vector<float> want = opened.fresh(all, options);
      for (const std::string& from : layout_names()) {
        options.layout = from;
        Session saved = opened.session(options);
        logits_after(opened, saved, text);
        const auto done = saved.save(path);
        ASSERT_TRUE(done) << message_of(done);
        for (const std::string& to : layout_names()) {
          options.layout = to;
          Session loaded = opened.session(options);
          const auto read = loaded.load(path);
          ASSERT_TRUE(read) << message_of(read) << from << to;
          EXPECT_TRUE(std::equal(text.begin(), text.end(), loaded.tokens().begin(), loaded.tokens().end()));
          EXPECT_TRUE(same_bits(logits_after(opened, loaded, more), want))
              << from << " " << to << " " << window << type;
        }
      }
    }
}

TEST(SessionFile, IsNotComputedAgain) {
  Opened opened(tiny::llama());
  const std::string path = (opened.folder() / "s.kv").string();
  const std::vector<int> text = tiny::ids(100);
  Session saved = opened.session();
  logits_after(opened, saved, std::span(text).first(80));
  ASSERT_TRUE(saved.save(path));
  GenerateOptions options = with_receipt(greedy_tokens(10));
  options.whole_text = true;
  Session cold = opened.session({.layout = "paged"}), warm = opened.session({.layout = "paged"});
  const auto want = generate(opened.engine(), cold, text, options);
  ASSERT_TRUE(warm.load(path));
  const auto got = generate(opened.engine(), warm, text, options);
  ASSERT_TRUE(want && got) << message_of(got);
  EXPECT_EQ(want->cached_tokens, 0);
  EXPECT_EQ(got->cached_tokens, 80);
  EXPECT_EQ(got->prompt_tokens, 100);
  EXPECT_EQ(got->receipt, want->receipt);
}

// Once with an empty session, once with one that holds tokens.
TEST(SessionFile, WhatIsRefusedLeavesTheSessionAsItWas) {
  Opened opened(tiny::llama());
  const std::string path = (opened.folder() / "s.kv").string();
  Session saved = opened.session();
  const std::vector<int> text = tiny::ids(70), other = tiny::ids(20, 6), next = tiny::ids(3, 9);
  logits_after(opened, saved, text);
  ASSERT_TRUE(saved.save(path));
  const std::string good = format_test::slurp(path);
  std::mt19937 random(3);
  for (const bool empty : {true, false}) {
    Session session = opened.session();
    std::vector<int> all;
    if (!empty) {
      logits_after(opened, session, other);
      all = other;
    }
    for (int i = 0; i < 200; ++i) {
      std::string bad = good;
      if (i % 4 == 0)
        bad.resize(random() % bad.size());
      else
        bad[random() % bad.size()] ^= static_cast<char>(1 << random() % 8);
      format_test::put(path, bad);
      EXPECT_FALSE(session.load(path));
      ASSERT_EQ(session.pos(), static_cast<int>(all.size()));
    }
    all.insert(all.end(), next.begin(), next.end());
    EXPECT_TRUE(same_bits(logits_after(opened, session, next), opened.fresh(all))) << empty;
    format_test::put(path, good);
    ASSERT_TRUE(session.load(path)) << "a rejected file does not spoil the next";
    all = text;
    all.insert(all.end(), next.begin(), next.end());
    EXPECT_TRUE(same_bits(logits_after(opened, session, next), opened.fresh(all))) << empty;
  }
}

TEST(SessionFile, OfAnotherKindIsNamed) {
  Opened opened(tiny::llama()), gpt2(tiny::gpt2());
  const std::string path = (opened.folder() / "s.kv").string();
  Session saved = opened.session({.ctx = 100});
  logits_after(opened, saved, tiny::ids(70));
  ASSERT_TRUE(saved.save(path));
  const auto refusal = [&](Opened& into, const SessionOptions& options) {
    Session session = into.session(options);
    return message_of(session.load(path));
  };
  EXPECT_THAT(refusal(gpt2, {}), HasSubstr("of model"));
  EXPECT_THAT(refusal(opened, {.kv_type_k = "f16"}),
              AllOf(HasSubstr("K type f32, not f16"), HasSubstr("SessionOptions::kv_type_k = f32")));
  EXPECT_THAT(refusal(opened, {.kv_type_v = "q8_0"}), HasSubstr("V type f32, not q8_0"));
  EXPECT_THAT(refusal(opened, {.window = 30}), HasSubstr("window none, not 30 sinks 4"));
  EXPECT_THAT(refusal(opened, {.ctx = 69}), HasSubstr("70 tokens do not fit the context of 69"));
  EXPECT_EQ(refusal(opened, {.ctx = 70}), "no error");
}

TEST(SessionFile, OfAnEmptySessionIsOne) {
  Opened opened(tiny::llama());
  const std::string path = (opened.folder() / "s.kv").string();
  ASSERT_TRUE(opened.session().save(path));
  Session session = opened.session();
  logits_after(opened, session, tiny::ids(20));
  ASSERT_TRUE(session.load(path));
  EXPECT_EQ(session.pos(), 0);
  EXPECT_TRUE(same_bits(logits_after(opened, session, tiny::ids(5)), opened.fresh(tiny::ids(5))));
}

TEST(SessionFile, TakesNoMoreThanTheBudgetHas) {
  ModelOptions limited;
  limited.kv_ram = 50000;
  Opened opened(tiny::llama(), {.threads = 1}, limited);
  const std::string path = (opened.folder() / "s.kv").string();
  {
    Session saved = opened.session({.layout = "dense", .ctx = 100});
    logits_after(opened, saved, tiny::ids(70));
    ASSERT_TRUE(saved.save(path));
    EXPECT_THAT(message_of(saved.load(path)), HasSubstr("50000")) << "it holds something, so both would be there";
    EXPECT_EQ(saved.pos(), 70);
  }
  Session loaded = opened.session({.layout = "dense", .ctx = 100});
  EXPECT_TRUE(loaded.load(path));
}

// Saves two sessions in turn until killed, and writes a byte before each save.
[[noreturn]] void save_in_turn(const Session& one, const Session& other, const std::string& path, int told) {
  char byte = 0;
  for (bool second = true;; second = !second) {
    (void)!write(told, &byte, 1);
    (void)(second ? other : one).save(path);
  }
}

// A process that saves two sessions in turn is killed after zero, one or two saves and a part of the next: the file
// then holds one of them, whole.
TEST(SlowSessionFile, AKilledSaveLeavesTheOldFileOrTheNew) {
  Opened opened(tiny::llama());
  const std::string path = (opened.folder() / "s.kv").string();
  ASSERT_TRUE(opened.model().fingerprint());
  Session one = opened.session(), other = opened.session();
  logits_after(opened, one, tiny::ids(150));
  logits_after(opened, other, tiny::ids(120, 5));
  ASSERT_TRUE(one.save(path));
  double save_us = 0;
  int seen_one = 0, seen_other = 0;
  for (int i = 0; i < 100; ++i) {
    int told[2];
    ASSERT_EQ(pipe(told), 0);
    const pid_t child = fork();
    if (child == 0) save_in_turn(one, other, path, told[1]);
    ASSERT_GT(child, 0);
    char byte = 0;
    ASSERT_EQ(read(told[0], &byte, 1), 1);
    const double start = now_seconds();
    const int saves = i % 3;
    for (int done = 0; done < saves; ++done) ASSERT_EQ(read(told[0], &byte, 1), 1);
    if (saves > 0) save_us = (now_seconds() - start) * 1e6 / saves;
    usleep(static_cast<useconds_t>(save_us * i / 100));
    ASSERT_EQ(kill(child, SIGKILL), 0);
    ASSERT_EQ(waitpid(child, nullptr, 0), child);
    close(told[0]);
    close(told[1]);
    Session loaded = opened.session();
    const auto read = loaded.load(path);
    ASSERT_TRUE(read) << message_of(read);
    const std::vector<int> tokens(loaded.tokens().begin(), loaded.tokens().end());
    ASSERT_TRUE(tokens == tiny::ids(150) || tokens == tiny::ids(120, 5));
    (tokens.size() == 150 ? seen_one : seen_other) += 1;
  }
  EXPECT_GT(seen_one, 0);
  EXPECT_GT(seen_other, 0);
}

}  // namespace
}  // namespace kvasir
